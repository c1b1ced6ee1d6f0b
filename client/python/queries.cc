#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/python/calls.h"
#include "client/python/session.h"
#include "client/queries/filter_json.h"
#include "client/queries/last_release.h"
#include "client/queries/replay.h"
#include "common/base/printable.h"
#include "common/wire/codec.h"

// Private searches. Targets are copied before they are checked: another thread could change the
// array between the check of its length and the release.

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

using Targets = py::array_t<float, py::array::c_style>;

std::vector<NamedTarget> ToTargets(const Targets& features,
                                   const std::optional<std::vector<int32_t>>& labels) {
  std::vector<NamedTarget> targets(static_cast<size_t>(features.shape(0)));
  for (py::ssize_t row = 0; row < features.shape(0); ++row) {
    NamedTarget& target = targets[static_cast<size_t>(row)];
    target.name = absl::StrCat("query ", row);
    target.row = row;
    target.target.features =
        Eigen::Map<const Eigen::RowVectorXf>(features.data(row, 0), features.shape(1));
    target.guessed = !labels.has_value();
    if (labels.has_value()) target.target.label = (*labels)[static_cast<size_t>(row)];
  }
  return targets;
}

std::optional<FloatMatrix> ToMatrix(const std::optional<Targets>& rows) {
  if (!rows.has_value()) return std::nullopt;
  return Eigen::Map<const FloatMatrix>(rows->data(), rows->shape(0), rows->shape(1));
}

// Names no value: the shape of a target is public, its numbers are not.
void CheckColumns(const Targets& features, const v1::GetCollectionResponse& collection) {
  const int64_t expected = collection.parameters().feature_dim();
  if (features.shape(1) == expected) return;
  throw StatusError(absl::InvalidArgumentError(
      absl::StrCat("queries must have ", expected, " columns, as the collection, but have ",
                   features.shape(1))));
}

void AddMatches(const std::vector<QueryMatch>& matches, py::dict* dict) {
  py::list ids, labels, distances, payloads;
  for (const QueryMatch& match : matches) {
    ids.append(match.id);
    labels.append(match.label);
    distances.append(match.squared_distance);
    payloads.append(match.payload);
  }
  (*dict)["ids"] = ids;
  (*dict)["labels"] = labels;
  (*dict)["squared_distances"] = distances;
  (*dict)["payloads"] = payloads;
}

template <typename Outcome>
py::dict ToDict(const Outcome& outcome) {
  py::dict dict;
  AddMatches(outcome.result.matches, &dict);
  dict["guarantee"] = GuaranteeToDict(outcome.prepared.state.guarantee);
  const Budget spent = outcome.ledger.spent(), left = outcome.ledger.left();
  dict["spent"] = py::make_tuple(spent.epsilon, spent.delta);
  dict["left"] = py::make_tuple(left.epsilon, left.delta);
  dict["bytes_up"] = outcome.prepared.request.ByteSizeLong();
  dict["bytes_down"] = outcome.bytes_down();
  return dict;
}

// The answered queries, the first failure of the others or None, and the warnings. resend: the call
// that sends the last release again. to_dict(outcome): of an answered one.
template <typename Outcome, typename Convert>
py::tuple ToTuple(const std::vector<Outcome>& outcomes, const Convert& to_dict, size_t queries,
                  const std::string& resend, const std::vector<std::string>& warnings) {
  py::list answers;
  for (const Outcome& outcome : outcomes) {
    answers.append(outcome.status.ok() ? py::object(to_dict(outcome)) : py::none());
  }
  const absl::Status failure = FailureOf(AttemptsOf(outcomes), queries, resend);
  py::object error = py::none();
  if (!failure.ok()) {
    error =
        py::make_tuple(absl::StatusCodeToString(failure.code()), std::string(failure.message()));
  }
  return py::make_tuple(answers, error, warnings);
}

PrivacyCost CostOf(double epsilon, const std::optional<double>& delta, const std::string& mechanism,
                   const std::optional<double>& radius, int64_t private_iterations) {
  PrivacyCost cost;
  cost.epsilon = epsilon;
  cost.mechanism = Check(MechanismFromName(mechanism));
  if (delta.has_value()) cost.delta = *delta;
  if (radius.has_value()) cost.radius = *radius;
  cost.private_iterations = private_iterations;
  return cost;
}

py::tuple SearchJoint(Session& session, const std::string& collection, const Targets& features,
                      const std::optional<std::vector<int32_t>>& labels, int64_t k, double epsilon,
                      const std::optional<double>& delta, const std::string& mechanism,
                      const std::optional<double>& radius, int64_t private_iterations,
                      int64_t classes, bool with_payloads, bool accept_misalignment,
                      const std::string& filter, const std::optional<Targets>& dummy_rows,
                      const std::vector<int32_t>& dummy_labels) {
  std::vector<NamedTarget> targets = ToTargets(features, labels);
  std::optional<Anchors> dummies;
  if (const auto rows = ToMatrix(dummy_rows)) dummies = Anchors{*rows, dummy_labels};
  QueryOptions options;
  options.cost = CostOf(epsilon, delta, mechanism, radius, private_iterations);
  options.k = k;
  options.with_payloads = with_payloads;
  options.filter = Check(FilterFromJson(filter));
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const std::vector<JointOutcome> outcomes = Interruptible([&] {
    const auto queries = session.Joint(collection, dummies);
    CheckColumns(features, queries->collection());
    Check(queries->AllotClasses(k, classes, &targets));
    if (!accept_misalignment) Check(queries->CheckAlignment());
    return Check(queries->Run(targets, options, classes, warn));
  });
  return ToTuple(outcomes, ToDict<JointOutcome>, targets.size(), "resend(label=...)", warnings);
}

py::tuple SearchCells(const Session& session, const std::string& collection,
                      const Targets& features, const std::optional<std::vector<int32_t>>& labels,
                      int64_t k, double epsilon, int64_t partition, int64_t ask, int64_t focus,
                      const std::optional<int64_t>& items, bool with_payloads,
                      bool accept_misalignment, const std::optional<Targets>& own_anchors,
                      const std::string& planned_for) {
  const std::vector<NamedTarget> targets = ToTargets(features, labels);
  CellQueryOptions options;
  options.cost = {.partition = partition, .ask = ask, .focus = focus, .epsilon = epsilon};
  options.k = k;
  options.with_payloads = with_payloads;
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const std::vector<CellsOutcome> outcomes = Interruptible([&] {
    CellQueries queries = Check(CellQueries::Fetch(session.transport(), session.settings(),
                                                   collection, !items.has_value()));
    Check(CheckPlanned(absl::HexStringToBytes(planned_for), queries.collection()));
    if (!own_anchors.has_value()) CheckColumns(features, queries.collection());
    options.items = items.has_value() ? *items : Check(queries.ItemsByQuality(options.cost));
    Check(queries.CreateClient(ToMatrix(own_anchors)));
    if (!accept_misalignment) Check(queries.client().targets().CheckAnchorsMatch());
    return Check(queries.Run(targets, options, warn));
  });
  return ToTuple(outcomes, ToDict<CellsOutcome>, targets.size(), "resend(query)", warnings);
}

py::dict GuaranteeToDict(const EncryptedGuarantee& guarantee) {
  py::dict dict;
  dict["kind"] = guarantee.kind;
  dict["bits"] = guarantee.bits;
  dict["assumption"] = guarantee.assumption;
  dict["source"] = guarantee.source;
  return dict;
}

py::dict ToDict(const SearchAnswer& answer, const std::vector<QueryMatch>& matches) {
  py::dict dict;
  AddMatches(matches, &dict);
  py::list similarities;
  for (const QueryMatch& match : matches) similarities.append(match.similarity);
  dict["similarities"] = similarities;
  dict["guarantee"] = GuaranteeToDict(answer.guarantee);
  dict["items"] = answer.items;
  py::list tables;
  for (const std::string& digest : answer.root_digests) tables.append(ToHex(digest));
  dict["tables"] = tables;
  dict["query_bytes"] = answer.bytes.queries;
  dict["keys_bytes"] = answer.bytes.keys;
  dict["table_bytes"] = answer.bytes.table;
  dict["payload_bytes"] = answer.bytes.payloads;
  dict["score_bytes"] = answer.bytes.scores;
  return dict;
}

py::tuple SearchEncrypted(Session& session, const std::string& collection, const Targets& features,
                          const std::optional<std::vector<int32_t>>& labels, int64_t k,
                          bool with_payloads, const std::string& filter) {
  std::vector<SearchTarget> targets;
  for (NamedTarget& target : ToTargets(features, labels)) {
    targets.push_back({.features = std::move(target.target.features)});
    if (labels.has_value()) targets.back().label = target.target.label;
  }
  const EncryptedRanking ranking{
      .k = k, .with_payloads = with_payloads, .filter = Check(FilterFromJson(filter))};
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const SearchAnswer answer = Interruptible(
      [&] { return Check(session.searches().Search(collection, targets, ranking, warn)); });
  py::list answers;
  for (const std::vector<QueryMatch>& matches : answer.matches) {
    answers.append(ToDict(answer, matches));
  }
  return py::make_tuple(answers, py::none(), warnings);
}

// The last release or search, if it was for this collection.
LastRelease OfCollection(LastRelease last, const std::string& collection) {
  if (last.collection.name() == collection) return last;
  throw StatusError(absl::FailedPreconditionError(
      absl::StrCat("the last release was for the collection ", Printable(last.collection.name()),
                   ", not for ", collection)));
}

py::dict Explain(const Session& session, const std::string& collection) {
  const LastRelease last =
      OfCollection(Check(LoadLastSearch(session.settings().state_folder)), collection);
  py::dict dict;
  dict["collection"] = last.collection.name();
  dict["fingerprint"] = ToHex(last.collection.fingerprint());
  dict["scheme"] = NameOf(last.scheme);
  if (last.scheme == Scheme::kEncrypted) {
    dict["views"] = last.view;
    return dict;
  }
  if (last.scheme == Scheme::kCells) {
    const v1::RetrieveCellsRequest& request = last.cells;
    dict["partition"] = request.partition();
    dict["cells"] = std::vector<uint32_t>(request.cells().begin(), request.cells().end());
    dict["epsilon"] = request.epsilon();
    dict["items"] = request.items();
    dict["payloads"] = request.with_payloads();
    dict["bytes"] = request.ByteSizeLong();
    return dict;
  }
  const v1::RetrieveRequest& request = last.request;
  const FloatMatrix release = Check(FromProto("release", request.release()));
  dict["k"] = request.k();
  dict["payloads"] = request.with_payloads();
  dict["filter"] = request.has_filter() ? FilterToJson(request.filter()).dump() : "";
  dict["iterations_after_noise"] = request.post_processing_steps();
  dict["release"] = Targets({release.rows(), release.cols()}, release.data());
  dict["bytes"] = request.ByteSizeLong();
  return dict;
}

py::dict Resend(const Session& session, const std::string& collection,
                const std::optional<Targets>& features,
                const std::optional<std::vector<int32_t>>& labels, std::optional<int64_t> k,
                const std::optional<Targets>& own_anchors) {
  const LastRelease last =
      OfCollection(Check(LoadLastRelease(session.settings().state_folder)), collection);
  const QuerySettings& settings = session.settings();
  std::vector<QueryMatch> matches;
  if (last.scheme == Scheme::kCells) {
    if (!features.has_value()) {
      throw StatusError(absl::InvalidArgumentError(
          "query must be given again: the last release was for cells, and no file names it"));
    }
    const std::vector<NamedTarget> targets = ToTargets(*features, labels);
    matches = Interruptible([&] {
                return Check(ResendCells(session.transport(), settings, last, targets.front(),
                                         k.value_or(kDefaultMatches), ToMatrix(own_anchors)));
              }).result.matches;
  } else {
    if (features.has_value() || own_anchors.has_value() || !labels.has_value()) {
      throw StatusError(absl::InvalidArgumentError(
          absl::StrCat("label must be given, and no query: the last release was of the scheme ",
                       NameOf(last.scheme))));
    }
    matches = Interruptible([&] {
                return Check(ResendJoint(session.transport(), settings, last, labels->front(), k));
              }).matches;
  }
  py::dict dict;
  AddMatches(matches, &dict);
  return dict;
}

}  // namespace

py::dict GuaranteeToDict(const Guarantee& guarantee) {
  py::dict dict;
  dict["epsilon"] = guarantee.epsilon;
  dict["delta"] = guarantee.delta;
  dict["neighbours"] = guarantee.neighbours;
  dict["radius"] = guarantee.radius;
  dict["metric"] = guarantee.metric;
  dict["proven"] = guarantee.proven;
  dict["source"] = guarantee.source;
  dict["gaussian_mu"] = guarantee.gaussian_mu;
  return dict;
}

void AddQueries(py::class_<Session, std::shared_ptr<Session>>& session) {
  session.def("search_joint", &SearchJoint)
      .def("search_encrypted", &SearchEncrypted)
      .def("search_cells", &SearchCells)
      .def("explain", &Explain)
      .def("resend", &Resend);
}

}  // namespace privatemail::client::python

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/python/calls.h"
#include "client/python/session.h"
#include "client/search/result_json.h"
#include "client/search/scheme_table.h"
#include "common/embedding/setting_names.h"
#include "privatemail/search.h"

// Private searches. Targets are copied before they are checked: another thread could change the
// array between the check of its length and the release.

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

using Rows = py::array_t<float, py::array::c_style>;

FloatMatrix ToMatrix(const Rows& rows) {
  return Eigen::Map<const FloatMatrix>(rows.data(), rows.shape(0), rows.shape(1));
}

// The number of a label or the text that names it.
using GivenLabel = std::variant<int32_t, std::string>;

void SetLabel(const GivenLabel& given, SearchTarget* target) {
  if (const auto* text = std::get_if<std::string>(&given)) {
    target->label_text = *text;
  } else {
    target->label = std::get<int32_t>(given);
  }
}

// Copies a keyword argument, if it is given, to a field of the request.
template <typename Given, typename Field>
void Take(const py::dict& given, const char* name, Field* field) {
  if (given.contains(name)) *field = given[name].cast<Given>();
}

// given: the arguments of `search` that are not None, of checked types.
SearchRequest ToRequest(const std::string& collection, const Rows& queries,
                        const std::optional<std::vector<GivenLabel>>& labels,
                        const py::dict& given) {
  SearchRequest request{.collection = collection};
  for (py::ssize_t row = 0; row < queries.shape(0); ++row) {
    SearchTarget& target = request.targets.emplace_back();
    target.name = absl::StrCat("query ", row);
    target.features = Eigen::Map<const Eigen::RowVectorXf>(queries.data(row, 0), queries.shape(1));
    if (labels.has_value()) SetLabel((*labels)[static_cast<size_t>(row)], &target);
  }
  if (given.contains("scheme")) {
    const auto name = given["scheme"].cast<std::string>();
    const auto scheme = kSchemeNames.find(name);
    if (scheme == kSchemeNames.end()) {
      throw StatusError(UnknownName("scheme", kSchemeNames, name));
    }
    request.scheme = scheme->second;
  }
  if (given.contains("mechanism")) {
    request.mechanism = Check(MechanismFromName(given["mechanism"].cast<std::string>()));
  }
  if (given.contains("fingerprint")) {
    request.fingerprint = absl::HexStringToBytes(given["fingerprint"].cast<std::string>());
  }
  if (given.contains("dummies")) {
    request.dummies = Anchors{ToMatrix(given["dummies"].cast<Rows>()),
                              given["dummy_labels"].cast<std::vector<int32_t>>()};
  }
  if (given.contains("own_anchors")) {
    request.own_anchors = ToMatrix(given["own_anchors"].cast<Rows>());
  }
  Take<int64_t>(given, "k", &request.k);
  Take<bool>(given, "payloads", &request.with_payloads);
  Take<std::string>(given, "filter", &request.filter);
  Take<bool>(given, "accept_misalignment", &request.accept_misalignment);
  for (const RequestField& field : RequestFields()) {
    std::visit(
        [&](const auto& member) {
          if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(member)>>) {
            using Value = typename std::decay_t<decltype(request.*member)>::value_type;
            Take<Value>(given, field.name, &(request.*member));
          }
        },
        field.member);
  }
  return request;
}

// The result of each target as (JSON, payloads, whether labels have names), None where there is
// none. Payloads stay texts: a hostile server may send JSON that Python does not read.
py::list ToList(SearchResponse response, const std::string& collection) {
  py::list answers;
  for (size_t i = 0; i < response.results.size(); ++i) {
    if (!response.results[i].status.ok()) {
      answers.append(py::none());
      continue;
    }
    py::list payloads;
    for (Match& match : response.results[i].matches) {
      payloads.append(std::exchange(match.payload, ""));
    }
    answers.append(py::make_tuple(ToJson(response, collection, i).dump(), payloads,
                                  !response.parameters.class_names.empty()));
  }
  return answers;
}

// Returns the answers, the first failure of the others or None, and all warnings but that of the
// charge. tell_charge, unless it is null, is called with that one before a large charge. If it
// raises an exception, nothing is charged, and the exception is passed on.
py::tuple Search(const Session& session, const std::string& collection, const Rows& queries,
                 const std::optional<std::vector<GivenLabel>>& labels, const py::dict& given,
                 const std::function<void(int64_t)>& progress,
                 const std::function<void(std::string)>& tell_charge) {
  const SearchRequest request = ToRequest(collection, queries, labels, given);
  std::string charge;
  std::optional<py::error_already_set> raised;
  const auto confirm = [&](const std::string& text) -> absl::Status {
    charge = text;
    try {
      tell_charge(text);
    } catch (const py::error_already_set& error) {
      raised.emplace(error);
      return absl::CancelledError(text);
    }
    return absl::OkStatus();
  };
  absl::StatusOr<SearchResponse> searched = Interruptible([&] {
    return session.client().Search(request, nullptr, progress,
                                   tell_charge ? ConfirmFunction(confirm) : nullptr);
  });
  if (raised.has_value()) throw py::error_already_set(*raised);
  SearchResponse response = Check(std::move(searched));
  const py::object failure =
      response.status.ok() ? py::object(py::none()) : py::object(ErrorTuple(response.status));
  std::erase(response.warnings, charge);
  const std::vector<std::string> warnings = std::move(response.warnings);
  return py::make_tuple(ToList(std::move(response), collection), failure, warnings);
}

py::tuple Resend(const Session& session, const std::string& collection,
                 const std::optional<Rows>& query, const std::optional<GivenLabel>& label,
                 std::optional<int64_t> k) {
  SearchTarget target{.name = "query"};
  if (label.has_value()) SetLabel(*label, &target);
  if (query.has_value()) target.features = ToMatrix(*query).row(0);
  SearchResponse response =
      Interruptible([&] { return Check(session.client().Resend(target, k, collection)); });
  return ToList(std::move(response), collection)[0];
}

std::string Explain(const Session& session, const std::string& collection) {
  return Check(SearchClient::Explain(session.client().state_folder(), collection));
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
  session.def("search", &Search).def("resend", &Resend).def("explain", &Explain);
}

}  // namespace privatemail::client::python

#include <google/protobuf/generated_enum_reflection.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/python/calls.h"
#include "client/python/session.h"
#include "client/schemes/class_labels.h"
#include "client/schemes/published_collection.h"
#include "client/search/batch.h"
#include "client/search/readiness.h"
#include "client/transport/snapshot_file.h"
#include "client/transport/upload.h"
#include "common/base/field_error.h"
#include "common/embedding/default_settings.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/setting_names.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/search_request.h"

// Collections, items, builds and budgets. Nothing here sees a target.

namespace privatemail::client::python {
namespace {

namespace py = pybind11;

using Rows = py::array_t<float, py::array::c_style>;
using Labels = py::array_t<int32_t, py::array::c_style>;

constexpr char kMetricPrefix[] = "METRIC_";

// The value of an enumeration by its name without the prefix, in lower case.
template <typename Enum>
Enum Named(const char* field, const std::string& prefix, const std::string& name) {
  const google::protobuf::EnumDescriptor* type = google::protobuf::GetEnumDescriptor<Enum>();
  std::map<std::string, Enum> known;
  for (int i = 1; i < type->value_count(); ++i) {  // 0 is UNSPECIFIED
    const std::string one = absl::AsciiStrToLower(type->value(i)->name().substr(prefix.size()));
    known[one] = static_cast<Enum>(type->value(i)->number());
  }
  const auto found = known.find(name);
  if (found == known.end()) throw StatusError(UnknownName(field, known, name));
  return found->second;
}

std::string MetricName(v1::Metric metric) {
  const Metric known = FromProto(metric).value_or(Metric::kCosine);
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Metric_Name(ToProto(known)), kMetricPrefix));
}

py::dict ToDict(const v1::GetCollectionResponse& collection) {
  const v1::PublicParameters& parameters = collection.parameters();
  py::dict dict;
  dict["name"] = collection.name();
  dict["uuid"] = parameters.collection_uuid();
  dict["fingerprint"] = ToHex(collection.fingerprint());
  dict["items"] = collection.items();
  dict["embedded_items"] = collection.embedded_items();
  dict["embedding_version"] = collection.embedding_version();
  dict["changes_since_embedding"] = collection.changes_since_embedding();
  dict["anchors"] = parameters.anchor_count();
  dict["feature_dim"] =
      parameters.feature_dim() == 0 ? py::object(py::none()) : py::int_(parameters.feature_dim());
  dict["embedding_dim"] = parameters.anchor_count() == 0
                              ? py::object(py::none())
                              : py::int_(parameters.settings().embedding_dim());
  dict["schemes"] = OfferedSchemes(parameters);
  dict["default_scheme"] = NameOf(DefaultScheme(OfferedSchemes(parameters)));
  dict["metric"] = MetricName(parameters.metric());
  dict["with_encrypted"] = parameters.with_encrypted();
  dict["extractor"] = parameters.extractor();
  dict["labels"] =
      std::vector<int32_t>(parameters.slot_labels().begin(), parameters.slot_labels().end());
  dict["class_names"] =
      std::vector<std::string>(parameters.class_names().begin(), parameters.class_names().end());
  std::vector<uint32_t> cells;
  for (const v1::CellPartition& partition : parameters.cell_partitions()) {
    cells.push_back(partition.cells());
  }
  dict["cells"] = cells;
  dict["cells_status"] = CellsStatusName(collection);
  dict["cells_ready"] = CheckCellsReady(collection).ok();
  return dict;
}

}  // namespace

EmbeddingSettings SettingsOf(const py::dict& settings, const std::vector<int32_t>& labels) {
  v1::EmbeddingSettings named;
  ToProto(DefaultSettings(labels), &named);
  if (settings.contains("label_graph")) {
    named.set_label_graph(Named<v1::LabelGraph>("label_graph", "LABEL_GRAPH_",
                                                settings["label_graph"].cast<std::string>()));
  }
  EmbeddingSettings embedding = Check(FromProto(named));
  embedding.alpha = settings.contains("alpha") ? settings["alpha"].cast<double>()
                                               : DefaultAlpha(embedding.label_graph, labels);
  if (settings.contains("embedding_dim")) {
    embedding.embedding_dim = settings["embedding_dim"].cast<int64_t>();
  }
  if (settings.contains("kernel_bandwidth")) {
    embedding.kernel_bandwidth = settings["kernel_bandwidth"].cast<double>();
  }
  if (settings.contains("steps")) embedding.steps = settings["steps"].cast<int>();
  Check(Validate(embedding));
  return embedding;
}

namespace {

py::dict Create(const Session& session, const std::string& name, const std::optional<Rows>& anchors,
                const std::vector<int32_t>& labels, const std::vector<std::string>& class_names,
                const std::string& extractor, const py::dict& settings,
                const std::vector<uint32_t>& cells, const std::string& cell_code,
                bool publish_quality, const std::string& metric, bool with_encrypted) {
  v1::CreateCollectionRequest request;
  request.set_name(name);
  if (anchors.has_value()) {
    const FloatMatrix rows =
        Eigen::Map<const FloatMatrix>(anchors->data(), anchors->shape(0), anchors->shape(1));
    ToProto(rows, request.mutable_anchors());
    ToProto(SettingsOf(settings, labels), request.mutable_settings());
  }
  request.mutable_anchor_labels()->Assign(labels.begin(), labels.end());
  request.mutable_class_names()->Assign(class_names.begin(), class_names.end());
  request.set_extractor(extractor);
  request.mutable_cells()->Assign(cells.begin(), cells.end());
  if (!cells.empty())
    request.set_cell_code(Named<v1::CellCode>("cell_code", "CELL_CODE_", cell_code));
  request.set_publish_quality(publish_quality);
  request.set_metric(Named<v1::Metric>("metric", kMetricPrefix, metric));
  request.set_with_encrypted(with_encrypted);
  return ToDict(
      Interruptible([&] { return Check(session.admin().CreateCollection(request)); }).collection());
}

// Reads the rows where the arrays hold them. numbers, names: the labels, one of them or neither.
// Malformed rows are named before anything is sent.
py::dict Upsert(const Session& session, const std::string& name, const Rows& features,
                const std::optional<Labels>& numbers, std::vector<std::string> names,
                const std::vector<std::string>& ids, const std::vector<std::string>& payloads,
                const std::function<void(int64_t)>& progress,
                const std::function<void(const std::string&)>& warn) {
  LabelColumn column{.names = std::move(names)};
  if (numbers.has_value()) {
    column.numbers.assign(numbers->data(), numbers->data() + numbers->size());
  }
  // A Python function takes the interpreter's lock itself.
  const v1::UpsertItemsResponse response = Interruptible([&] {
    const v1::GetCollectionResponse collection = Check(session.admin().GetCollection(name));
    const PublicParameters parameters = Check(FromProto(collection.parameters()));
    const NamedLabels labels =
        Check(LabelsOfItems("labels", column, parameters, collection.items() > 0));
    const int64_t columns = features.shape(1);
    const ItemColumns items = {
        .copy_features =
            [&](int64_t first, int64_t count, float* out) {
              std::copy_n(features.data() + first * columns, count * columns, out);
            },
        .feature_dim = columns,
        .labels = labels.labels,
        .ids = ids,
        .payloads = payloads,
        .class_names = parameters.HasClasses() ? absl::Span<const std::string>()
                                               : absl::MakeConstSpan(labels.class_names)};
    const std::vector<MalformedRows> malformed = FindMalformed(items, parameters);
    const auto refuse = [](const std::string& argument, const std::vector<std::string>& reasons,
                           absl::string_view rest) {
      throw StatusError(InvalidField(
          argument,
          absl::StrCat("must be valid, but are not: ", absl::StrJoin(reasons, "; "), "; ", rest)));
    };
    std::vector<std::string> reasons;
    for (const MalformedRows& one : malformed) {
      if (reasons.size() < 5) reasons.push_back(one.ToString());
    }
    if (!reasons.empty()) {
      const std::string& field = malformed.front().field;
      refuse(field == "features" ? field : absl::StrCat(field, "s"), reasons, "nothing was sent");
    }
    v1::UpsertItemsResponse sent = Check(
        UploadItems(session.admin(), name, items, malformed, {progress, warn, Interrupted()}));
    for (const v1::RejectedItem& item : sent.first_rejected()) {
      if (reasons.size() < 5) {
        reasons.push_back(absl::StrCat("row ", item.position(), ": ", item.reason()));
      }
    }
    if (sent.rejected() > 0) {
      refuse(
          "features", reasons,
          absl::StrCat("the server refused ", sent.rejected(), " rows and has stored the others"));
    }
    return sent;
  });
  if (const std::string text = StrippedText(response); !text.empty()) warn(text);
  py::dict dict;
  dict["inserted"] = response.inserted();
  dict["updated"] = response.updated();
  dict["unchanged"] = response.unchanged();
  return dict;
}

void Build(const Session& session, const std::string& name,
           const std::function<void(double)>& progress, bool accept_misalignment) {
  const auto show = [&](const v1::BuildEmbeddingResponse& message) {
    if (progress) progress(message.share());
  };
  Interruptible([&] {
    Check(session.admin().BuildEmbedding(name, show, accept_misalignment));
    return true;
  });
}

void WaitForCells(const Session& session, const std::string& name,
                  const std::function<void(const std::string&, std::optional<double>)>& show) {
  RunInterruptibly([&] {
    Check(WaitUntilReady(session.admin(), name,
                         [&](const Awaited& one) { show(one.what, one.share); }));
  });
}

py::dict ToDict(const Budget& budget) {
  py::dict dict;
  dict["epsilon"] = budget.epsilon;
  dict["delta"] = budget.delta;
  return dict;
}

py::dict ToDict(const LedgerEntry& entry) {
  py::dict dict;
  dict["granted"] = entry.granted.has_value() ? py::object(ToDict(*entry.granted)) : py::none();
  dict["accounting"] = entry.accounting == Accounting::kBasic ? "basic" : "gaussian";
  dict["spent"] = ToDict(entry.spent());
  dict["left"] = ToDict(entry.left());
  dict["releases"] = entry.releases;
  dict["all_proven"] = entry.all_proven;
  dict["neighbours"] =
      entry.neighbours.empty() ? py::object(py::none()) : py::str(entry.neighbours);
  return dict;
}

py::dict ShowBudget(const Session& session, const std::string& uuid) {
  const LedgerEntry entry = Interruptible(
      [&] { return Check(Check(OpenLedger(session.client().state_folder()))->Show(uuid)); });
  return ToDict(entry);
}

// The sums over all collections of the operators, by their names.
py::dict ShowOperators(const Session& session, const std::string& uuid) {
  const std::vector<OperatorEntry> operators = Interruptible([&] {
    return Check(Check(OpenLedger(session.client().state_folder()))
                     ->ShowOperators(uuid, session.client().server_identity()));
  });
  py::dict dict;
  for (const OperatorEntry& one : operators) dict[py::str(one.name)] = ToDict(one.sum);
  return dict;
}

// operator_name: instead of the collection; or empty.
void Grant(const Session& session, const std::string& uuid, double epsilon,
           std::optional<double> delta, const std::string& accounting,
           const std::string& operator_name) {
  const std::map<std::string, Accounting> kinds = {{"basic", Accounting::kBasic},
                                                   {"gaussian", Accounting::kGaussian}};
  const auto kind = kinds.find(accounting);
  if (!accounting.empty() && kind == kinds.end()) {
    throw StatusError(UnknownName("accounting", kinds, accounting));
  }
  RunInterruptibly([&] {
    const auto ledger = Check(OpenLedger(session.client().state_folder()));
    const LedgerEntry former = operator_name.empty()
                                   ? Check(ledger->Show(uuid))
                                   : Check(ledger->ShowOperator(operator_name)).sum;
    const Accounting how = kind == kinds.end() ? former.accounting : kind->second;
    const Budget budget{epsilon, delta.value_or(former.granted.value_or(Budget()).delta)};
    const std::string server = session.client().server_identity();
    Check(operator_name.empty() ? ledger->Grant(uuid, budget, how, server)
                                : ledger->GrantOperator(operator_name, server, budget, how));
  });
}

py::list History(const Session& session, const std::string& uuid) {
  const std::vector<LedgerChange> changes = Interruptible(
      [&] { return Check(Check(OpenLedger(session.client().state_folder()))->History(uuid)); });
  py::list rows;
  for (const LedgerChange& change : changes) {
    py::dict dict;
    const bool of_operator = change.kind == LedgerChange::Kind::kOperatorGrant;
    const bool grant = of_operator || change.kind == LedgerChange::Kind::kGrant;
    dict["at"] = change.made_at;
    dict["kind"] = of_operator ? "operator-grant" : grant ? "grant" : "charge";
    if (of_operator) dict["operator"] = change.collection;
    if (!change.server.empty()) dict["server"] = change.server;
    dict["epsilon"] = change.epsilon;
    dict["delta"] = change.delta;
    if (!grant) {
      dict["gaussian_mu"] = change.gaussian_mu;
      dict["neighbours"] = change.neighbours;
      dict["proven"] = change.proven;
      dict["source"] = change.source;
    }
    rows.append(dict);
  }
  return rows;
}

py::dict ToDict(const v1::Item& item, bool features) {
  py::dict dict;
  dict["id"] = item.id();
  dict["label"] = item.unlabelled() ? py::object(py::none()) : py::int_(item.label());
  dict["version"] = item.version();
  dict["payload"] = item.payload();
  if (features) {
    dict["features"] = py::array_t<float>(item.features_size(), item.features().data());
  }
  return dict;
}

py::list GetItems(const Session& session, const std::string& name,
                  const std::vector<std::string>& ids, bool features) {
  v1::GetItemsRequest request;
  request.set_collection(name);
  request.mutable_ids()->Assign(ids.begin(), ids.end());
  const v1::GetItemsResponse response =
      Interruptible([&] { return Check(session.admin().GetItems(request)); });
  py::list items;
  for (const v1::Item& item : response.items()) items.append(ToDict(item, features));
  return items;
}

// A page and the cursor of the next; an empty one after the last.
py::tuple ScrollItems(const Session& session, const std::string& name, const std::string& cursor,
                      uint32_t limit, bool features) {
  v1::ScrollItemsRequest request;
  request.set_collection(name);
  request.set_cursor(cursor);
  request.set_limit(limit);
  const v1::ScrollItemsResponse response =
      Interruptible([&] { return Check(session.admin().ScrollItems(request)); });
  py::list items;
  for (const v1::Item& item : response.items()) items.append(ToDict(item, features));
  return py::make_tuple(items, response.next_cursor());
}

constexpr char kScopePrefix[] = "KEY_SCOPE_";

py::dict ToDict(const v1::Key& key) {
  py::dict dict;
  dict["id"] = key.id();
  dict["name"] = key.name();
  std::vector<std::string> scopes;
  for (const int scope : key.scopes()) {
    const std::string name = v1::KeyScope_Name(scope);
    scopes.push_back(absl::AsciiStrToLower(absl::StripPrefix(name, kScopePrefix)));
  }
  dict["scopes"] = scopes;
  dict["collections"] =
      std::vector<std::string>(key.collections().begin(), key.collections().end());
  dict["requests_per_second"] = key.requests_per_second();
  dict["created_at"] = key.created_at();
  dict["revoked_at"] = key.revoked_at();
  dict["expires_at"] = key.expires_at();
  return dict;
}

// The new key and its text, which the server sends this once.
py::tuple CreateKey(const Session& session, const std::string& name,
                    const std::vector<std::string>& scopes,
                    const std::vector<std::string>& collections, double requests_per_second,
                    int64_t expires_at) {
  v1::CreateKeyRequest request;
  request.set_name(name);
  for (const std::string& scope : scopes)
    request.add_scopes(Named<v1::KeyScope>("scopes", kScopePrefix, scope));
  request.mutable_collections()->Assign(collections.begin(), collections.end());
  request.set_requests_per_second(requests_per_second);
  request.set_expires_at(expires_at);
  const v1::CreateKeyResponse response =
      Interruptible([&] { return Check(session.admin().CreateKey(request)); });
  return py::make_tuple(ToDict(response.key()), response.text());
}

py::list ListKeys(const Session& session) {
  const v1::ListKeysResponse response =
      Interruptible([&] { return Check(session.admin().ListKeys()); });
  py::list keys;
  for (const v1::Key& key : response.keys()) keys.append(ToDict(key));
  return keys;
}

py::dict Snapshot(const Session& session, const std::string& name, const std::string& path,
                  bool replace, int64_t max_bytes,
                  const std::function<void(int64_t, int64_t)>& progress) {
  const SavedSnapshot saved = Interruptible([&] {
    absl::StatusOr<SavedSnapshot> done =
        SaveSnapshot(session.admin(), name, path,
                     replace ? PrivateFile::Existing::kReplace : PrivateFile::Existing::kKeep,
                     max_bytes, progress);
    if (absl::IsAlreadyExists(done.status())) {
      done = WithNote(done.status(), ": replace it with replace=True");
    }
    return Check(std::move(done));
  });
  py::dict dict;
  dict["items"] = saved.items;
  dict["anchors"] = saved.anchors;
  dict["latest_version"] = saved.latest_version;
  dict["bytes"] = saved.bytes;
  return dict;
}

// The number of items to build; none without anchors.
uint64_t Restore(const Session& session, const std::string& name, const std::string& path,
                 const std::function<void(int64_t, int64_t)>& progress) {
  const v1::GetCollectionResponse restored = Interruptible([&] {
    return Check(RestoreSnapshot(session.admin(), name, path, nullptr, progress)).collection;
  });
  return restored.parameters().anchor_count() == 0 ? 0 : restored.items();
}

py::dict Plan(const Session& session, const std::string& name, double epsilon, int64_t max_bytes,
              const std::optional<double>& fidelity, const std::optional<double>& recall) {
  std::string fingerprint;
  const QueryPlan plan = Interruptible([&] {
    const v1::GetCollectionResponse collection =
        Check(session.admin().GetCollection(name, {.quality = true}));
    fingerprint = ToHex(collection.fingerprint());
    PlanWish wish;
    wish.epsilon = epsilon;
    if (max_bytes > 0) wish.max_bytes = max_bytes;
    wish.fidelity = fidelity;
    wish.recall = recall;
    const CellQuality quality = Check(QualityOf(collection));
    return Check(MakePlan(Check(ReadBuiltCollection(collection)), quality,
                          static_cast<int64_t>(collection.cells_items()), wish));
  });
  const auto estimate = [](const Estimate& one) {
    return py::make_tuple(one.value, one.low, one.high);
  };
  py::dict dict;
  dict["fingerprint"] = fingerprint;
  dict["partition"] = plan.cost.partition;
  dict["cells"] = plan.cells;
  dict["items"] = plan.items;
  dict["fidelity"] = estimate(plan.prediction.fidelity);
  dict["recall"] = estimate(plan.prediction.recall);
  dict["bytes_down"] = plan.bytes_down;
  dict["fulfils"] = plan.fulfils;
  return dict;
}

}  // namespace

void AddCollections(py::class_<Session, std::shared_ptr<Session>>& session) {
  session
      .def("get_collection",
           [](const Session& self, const std::string& name) {
             return ToDict(Interruptible([&] { return Check(self.admin().GetCollection(name)); }));
           })
      .def("list_collections",
           [](const Session& self) {
             py::list list;
             const v1::ListCollectionsResponse response =
                 Interruptible([&] { return Check(self.admin().ListCollections()); });
             for (const auto& collection : response.collections()) list.append(ToDict(collection));
             return list;
           })
      .def("create_collection", &Create)
      .def("delete_collection",
           [](const Session& self, const std::string& name) {
             return Interruptible([&] { return Check(self.admin().DeleteCollection(name)); })
                 .deleted_items();
           })
      .def("upsert", &Upsert)
      .def("delete_items",
           [](const Session& self, const std::string& name, const std::vector<std::string>& ids) {
             v1::DeleteItemsRequest request;
             request.set_collection(name);
             request.mutable_ids()->Assign(ids.begin(), ids.end());
             const v1::DeleteItemsResponse response =
                 Interruptible([&] { return Check(self.admin().DeleteItems(request)); });
             return py::make_tuple(response.deleted(),
                                   std::vector<std::string>(response.first_missing().begin(),
                                                            response.first_missing().end()));
           })
      .def("count_items",
           [](const Session& self, const std::string& name) {
             v1::CountItemsRequest request;
             request.set_collection(name);
             return Interruptible([&] { return Check(self.admin().CountItems(request)); }).items();
           })
      .def("get_items", &GetItems)
      .def("scroll_items", &ScrollItems)
      .def("create_key", &CreateKey)
      .def("list_keys", &ListKeys)
      .def("revoke_key",
           [](const Session& self, const std::string& id) {
             return ToDict(Interruptible([&] { return Check(self.admin().RevokeKey(id)); }).key());
           })
      .def("snapshot", &Snapshot)
      .def("restore", &Restore)
      .def("plan", &Plan)
      .def("build", &Build)
      .def("wait_until_ready", &WaitForCells)
      .def("show_budget", &ShowBudget)
      .def("show_operators", &ShowOperators)
      .def("grant", &Grant)
      .def("history", &History);
}

}  // namespace privatemail::client::python

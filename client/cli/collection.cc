#include "client/cli/collection.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/flags.h"
#include "client/planning/published_quality.h"
#include "client/schemes/joint/joint_search.h"
#include "client/search/readiness.h"
#include "client/search/result_json.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

absl::StatusOr<Result> ListCollections(const Context& context, const std::string&) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, admin.ListCollections());
  constexpr int64_t kRowBytes = 8'000;  // of the JSON and text of an empty description
  MemoryBudget memory(kServerRows, context.limits.max_memory);
  nlohmann::json rows = nlohmann::json::array();
  for (const v1::GetCollectionResponse& c : response.collections()) {
    PM_RETURN_IF_ERROR(memory.Reserve(kRowBytes + 4 * static_cast<int64_t>(c.SpaceUsedLong())));
    rows.push_back(ToJson(c));
  }
  return Result{
      .json = std::move(rows),
      .columns = {
          {"", {"name", "items", "feature_dim", "schemes", "anchors", "embedded", "version"}}}};
}

absl::StatusOr<std::optional<ExpectedAlignment>> FetchAlignment(
    const Context& context, const Transport& transport, const v1::GetCollectionResponse& c) {
  const auto fetch_anchors = [&] { return transport.GetAnchors(c.name(), c.fingerprint()); };
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const JointCollection> collection,
                      JointCollection::Create(c, fetch_anchors, /*own=*/{}, context.limits));
  return collection->ExpectAlignment();
}

// The expected recall of queries, or why it is not known.
void AddAlignment(const Context& context, const Transport& transport,
                  const v1::GetCollectionResponse& c, Result* result) {
  if (c.embedding_version() == 0 || c.parameters().slot_labels().empty()) return;
  const auto alignment = FetchAlignment(context, transport, c);
  if (!alignment.ok() || !alignment->has_value()) {
    result->json["alignment_unknown"] =
        alignment.ok() ? kNoCoordinates : std::string(alignment.status().message());
    return;
  }
  result->json["alignment"] = {{"expected_recall", (*alignment)->recall},
                               {"expected_relative_residual", (*alignment)->relative_residual}};
  result->brief.emplace_back("alignment/expected_recall");
  if (const absl::Status check = CheckAlignment(**alignment); !check.ok()) {
    Warn(std::string(check.message()));
  }
}

}  // namespace

absl::StatusOr<Result> CollectionInfo(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse c,
                      admin.GetCollection(name, {.changes = true}));
  Result result = DescribeCollection(c);
  if (c.changes_since_embedding() > 0) result.hint = BuildHint(c);
  if (c.has_changes()) {
    result.json["changes"] = {{"inserted", c.changes().inserted()},
                              {"updated", c.changes().updated()},
                              {"deleted", c.changes().deleted()}};
  }
  AddAlignment(context, admin, c, &result);
  return result;
}

namespace {

struct DeleteOptions {
  std::string name;
  bool yes = false;
};

// On a terminal the user types the name; elsewhere --yes is required.
absl::Status ConfirmDeletion(const Transport& transport, const std::string& name) {
  if (::isatty(STDIN_FILENO) == 0) {
    return absl::InvalidArgumentError(
        "--yes must be given to delete a collection if standard input is no terminal");
  }
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse c, transport.GetCollection(name));
  std::cerr << "Delete collection " << Printable(name) << " with " << c.items() << " items"
            << "? Type its name: ";
  std::string typed;
  std::getline(std::cin, typed);
  if (typed == name) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("another name was typed; collection ", name, " is not deleted"));
}

absl::StatusOr<Result> DeleteCollection(const Context& context, const DeleteOptions& options) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  if (!options.yes) PM_RETURN_IF_ERROR(ConfirmDeletion(admin, options.name));
  PM_ASSIGN_OR_RETURN(const v1::DeleteCollectionResponse response,
                      admin.DeleteCollection(options.name));
  return Result{.json = {{"deleted_items", response.deleted_items()}}};
}

struct BuildOptions {
  std::string name;
  bool accept_misalignment = false;
  bool wait = false;
};

// Shows a bar for each part that is awaited; if standard error is no terminal, its name first.
absl::StatusOr<v1::GetCollectionResponse> WaitVisibly(const AdminClient& admin,
                                                      const std::string& name) {
  std::string what;
  std::optional<ProgressBar> bar;
  return WaitUntilReady(admin, name, [&](const Awaited& awaited) {
    if (awaited.what != what) {
      what = awaited.what;
      bar.emplace(what);
      if (::isatty(STDERR_FILENO) == 0) std::cerr << "waiting for " << what << std::endl;
    }
    bar->Show(awaited.share);
  });
}

absl::StatusOr<Result> Wait(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_RETURN_IF_ERROR(WaitVisibly(admin, name).status());
  return CollectionInfo(context, name);
}

absl::StatusOr<Result> Build(const Context& context, const BuildOptions& options) {
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::BuildEmbeddingResponse done,
                      BuildWithProgress(admin, options.name, options.accept_misalignment));
  v1::GetCollectionResponse c = done.collection();
  if (options.wait) {
    PM_ASSIGN_OR_RETURN(c, WaitVisibly(admin, options.name));
  }
  Result result{.json = {{"embedded", c.embedded_items()},
                         {"version", c.embedding_version()},
                         {"seconds", done.elapsed_seconds()},
                         {"objective", done.objective()},
                         {"plan", done.plan()}},
                .brief = {"embedded", "seconds", "alignment_unknown"}};
  AddAlignment(context, admin, c, &result);
  if (c.cells_status() == v1::CELLS_STATUS_PREPARING) {
    result.hint = absl::StrCat("cells are being prepared: `privatemail collection wait ",
                               options.name, "` waits for them");
  }
  return result;
}

absl::Status Health(Context& context, const std::string& collection) {
  const absl::StatusOr<AdminClient> admin = AdminClient::Create(context.connection);
  if (!admin.ok()) {
    // A wrong file or flag is no failure of the server: a supervisor must not restart it.
    PrintError(admin.status(), context.json);
    context.exit_code = kExitUsage;
    return absl::OkStatus();
  }
  PM_ASSIGN_OR_RETURN(const bool read_only, admin->IsReadOnly());
  PM_ASSIGN_OR_RETURN(const bool serving, admin->IsServing(collection));
  if (serving) {
    return Finish(context, Result{.json = {{"status", "SERVING"}, {"read_only", read_only}}});
  }
  return absl::UnavailableError(
      collection.empty()
          ? "the server is not serving: it is ending, still loading, or a front that lacks a shard"
          : absl::StrCat("collection ", collection,
                         " is not serving: it is not built, or the server is ending"));
}

}  // namespace

std::string CodeName(v1::CellCode code) {
  for (const auto& [name, known] : kCellCodeNames) {
    if (ToProto(known) == code) return name;
  }
  return "";
}

nlohmann::json ToJson(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  nlohmann::json cells = nlohmann::json::array();
  for (const auto& partition : p.cell_partitions()) cells.push_back(partition.cells());
  nlohmann::json json = {
      {"name", c.name()},
      {"uuid", p.collection_uuid()},
      {"digest", absl::BytesToHexString(c.fingerprint())},
      {"items", c.items()},
      {"embedded", c.embedded_items()},
      {"version", c.embedding_version()},
      {"changes_since_embedding", c.changes_since_embedding()},
      {"build_share", OrNull(c.has_build_share(), c.build_share())},
      {"index", c.index()},
      {"classes", std::max(p.slot_labels_size(), p.class_names_size())},
      {"anchors", p.anchor_count()},
      {"feature_dim", OrNull(p.feature_dim() != 0, p.feature_dim())},
      {"schemes", OfferedSchemes(p)},
      {"default_scheme", NameOf(DefaultScheme(OfferedSchemes(p)))},
      {"metric", NameIn(kMetricNames, FromProto(p.metric()).value_or(Metric::kCosine))},
      {"with_encrypted", p.with_encrypted()},
      {"cells", cells},
      {"cell_code", CodeName(p.cell_code())},
      {"cell_code_error",
       OrNull(p.has_cell_codebook(), p.cell_codebook().relative_squared_error())},
      {"cells_status", CellsStatusName(c)},
      {"cells_state", c.cells()},
      {"cells_ready", CheckCellsReady(c).ok()},
      {"publish_quality", p.publish_quality()},
      {"extractor", p.extractor()},
      {"class_names", p.class_names()}};
  if (p.anchor_count() == 0) return json;
  const v1::EmbeddingSettings& s = p.settings();
  json["embedding_dim"] = s.embedding_dim();
  json["kernel_bandwidth"] = s.kernel_bandwidth();
  json["alpha"] = s.alpha();
  json["kernel"] = v1::Kernel_Name(s.kernel());
  json["label_graph"] = v1::LabelGraph_Name(s.label_graph());
  json["steps"] = s.steps();
  json["start"] = NameIn(kStartNames,
                         s.start() == v1::START_CLASSES ? StartKind::kClasses : StartKind::kRandom);
  json["start_stddev"] = s.start_stddev();
  json["normalise"] = s.normalise();
  return json;
}

Result DescribeCollection(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  Result result{.json = ToJson(c),
                .brief = {"name", "items", "feature_dim", "extractor", "schemes", "labels"}};
  nlohmann::json& labels = result.json["labels"] = p.class_names();
  if (labels.empty()) labels = p.slot_labels();
  if (p.with_encrypted()) result.brief.emplace_back("metric");
  if (p.anchor_count() == 0) return result;
  for (const char* key : {"anchors", "embedded", "cells_state", "changes_since_embedding"}) {
    result.brief.emplace_back(key);
  }
  return result;
}

std::string BuildHint(const v1::GetCollectionResponse& collection) {
  std::vector<std::string> schemes = OfferedSchemes(collection.parameters());
  std::erase(schemes, NameOf(Scheme::kEncrypted));
  if (schemes.empty()) return "";
  return absl::StrCat("searches with ", absl::StrJoin(schemes, " and "),
                      " find new items after `privatemail build ", collection.name(), "`");
}

absl::StatusOr<v1::BuildEmbeddingResponse> BuildWithProgress(const AdminClient& admin,
                                                             const std::string& name,
                                                             bool accept_misalignment) {
  ProgressBar bar("embedding");
  const auto show = [&](const v1::BuildEmbeddingResponse& message) { bar.Show(message.share()); };
  return admin.BuildEmbedding(name, show, accept_misalignment);
}

void AddCollectionCommands(CLI::App& app, Context& context) {
  CLI::App* collection = AddCommand(app, "collection", "Create, list, show and delete collections");
  collection->require_subcommand(1);
  AddCreateCollectionCommand(*collection, context);
  AddCommand(*collection, context, "list", "All collections", &ListCollections);
  const auto [info, shown] =
      AddCommand(*collection, context, "info", "Public parameters and counts", &CollectionInfo);
  info->add_option("NAME", *shown, "The collection")->required();
  const auto [wait, awaited] = AddCommand(
      *collection, context, "wait",
      "Wait until no build runs and cells are prepared and measured; then as info", &Wait);
  wait->add_option("NAME", *awaited, "The collection")->required();
  const auto [remove, deletion] =
      AddCommand(*collection, context, "delete",
                 "Delete a collection and its items, after you type its name", &DeleteCollection);
  remove->add_option("NAME", deletion->name, "The collection")->required();
  remove->add_flag("--yes", deletion->yes,
                   "Delete without confirmation; required if standard input is no terminal");
  const auto [build, building] =
      AddCommand(app, context, "build", "Embed gallery and anchors; searches need it", &Build);
  build->add_option("NAME", building->name, "The collection")->required();
  build->add_flag(kAcceptMisalignmentFlag, building->accept_misalignment,
                  "Build even if the items' labels do not seem to mean those of the anchors");
  build->add_flag("--wait", building->wait, "Wait until its cells are prepared and measured, too");
  CLI::App* health = AddCommand(
      app, "health",
      "For probes: exit code 0 if the server serves, 1 if not, 2 if a file or flag is wrong "
      "and nothing was sent. Needs no key");
  auto name = std::make_shared<std::string>();
  health->add_option("--collection", *name,
                     "Also check that this collection is built; needs a key for it");
  health->callback(
      [&context, name] { context.run = [&context, name] { return Health(context, *name); }; });
}

}  // namespace privatemail::client::cli

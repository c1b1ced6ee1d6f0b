#include "client/cli/collection.h"

#include <unistd.h>

#include <iostream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/flags/names.h"
#include "client/queries/cell_queries.h"
#include "client/queries/scheme.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {
namespace {

std::vector<uint32_t> CellCounts(const v1::PublicParameters& p) {
  std::vector<uint32_t> counts;
  for (const auto& partition : p.cell_partitions()) counts.push_back(partition.cells());
  return counts;
}

// Null without a codebook.
nlohmann::json CodeError(const v1::PublicParameters& p) {
  if (!p.has_cell_codebook()) return nullptr;
  return p.cell_codebook().relative_squared_error();
}

std::string CodeText(const v1::PublicParameters& p) {
  if (p.cell_code() == v1::CELL_CODE_NONE) return "coordinates of the embedding (code none)";
  if (!p.has_cell_codebook()) return CodeName(p.cell_code());
  return absl::StrFormat("%s (relative squared error %.2g on the anchors)", CodeName(p.cell_code()),
                         p.cell_codebook().relative_squared_error());
}

absl::StatusOr<Result> ListCollections(const Context& context, const std::string&) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, transport.ListCollections());
  constexpr int64_t kRowBytes = 8'000;  // of the JSON and text of an empty description
  RowList rows(context.connection.max_memory);
  for (const v1::GetCollectionResponse& c : response.collections()) {
    PM_RETURN_IF_ERROR(rows.Reserve(kRowBytes + 4 * static_cast<int64_t>(c.SpaceUsedLong())));
    rows.Add(ToJson(c), CollectionToText(c));
  }
  return Result{rows.json(), rows.text().empty() ? "no collections\n" : rows.text()};
}

absl::StatusOr<std::optional<ExpectedAlignment>> FetchAlignment(
    const Context& context, const Transport& transport, const v1::GetCollectionResponse& c) {
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      FetchAnchors(transport, c, Scheme::kJoint, LimitsOf(context)));
  PM_ASSIGN_OR_RETURN(const JointClient client,
                      JointClient::Create(c, anchors, std::nullopt, LimitsOf(context)));
  return client.ExpectAlignment();
}

// The expected recall of queries, or why it is not known.
void AddAlignment(const Context& context, const Transport& transport,
                  const v1::GetCollectionResponse& c, Result* result) {
  if (c.embedding_version() == 0 || c.parameters().slot_labels().empty()) return;
  const auto alignment = FetchAlignment(context, transport, c);
  if (!alignment.ok() || !alignment->has_value()) {
    absl::StrAppend(&result->text, "  alignment not known: ",
                    alignment.ok() ? kNoCoordinates : Printable(alignment.status().message()),
                    "\n");
    return;
  }
  result->json["alignment"] = ToJson(**alignment);
  absl::StrAppend(&result->text, "  alignment ", AlignmentText(**alignment), "\n");
  if (const absl::Status check = CheckAlignment(**alignment); !check.ok()) {
    const std::string warning(check.message());
    result->json["warnings"] = {warning};
    Warn(warning);
  }
}

}  // namespace

absl::StatusOr<Result> CollectionInfo(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse c,
                      transport.GetCollection(name, {.changes = true}));
  Result result{.json = ToJson(c), .text = CollectionToText(c)};
  if (c.has_changes()) {
    result.json["changes"] = {{"inserted", c.changes().inserted()},
                              {"updated", c.changes().updated()},
                              {"deleted", c.changes().deleted()}};
  }
  AddAlignment(context, transport, c, &result);
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
  std::cerr << "Delete collection " << Printable(name) << " with " << Counted(c.items(), "item")
            << "? Type its name: ";
  std::string typed;
  std::getline(std::cin, typed);
  if (typed == name) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("another name was typed; collection ", name, " is not deleted"));
}

absl::StatusOr<Result> DeleteCollection(const Context& context, const DeleteOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  if (!options.yes) PM_RETURN_IF_ERROR(ConfirmDeletion(transport, options.name));
  PM_ASSIGN_OR_RETURN(const v1::DeleteCollectionResponse response,
                      transport.DeleteCollection(options.name));
  return Result{.json = {{"deleted_items", response.deleted_items()}},
                .text = absl::StrCat("deleted ", options.name, " with ",
                                     Counted(response.deleted_items(), "item"), "\n")};
}

struct BuildOptions {
  std::string name;
  bool accept_misalignment = false;
};

absl::StatusOr<Result> Build(const Context& context, const BuildOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::BuildEmbeddingResponse done,
                      BuildWithProgress(transport, options.name, options.accept_misalignment));
  const v1::GetCollectionResponse& c = done.collection();
  Result result{
      .json = {{"embedded", c.embedded_items()},
               {"version", c.embedding_version()},
               {"seconds", done.elapsed_seconds()},
               {"objective", done.objective()},
               {"plan", done.plan()}},
      .text = absl::StrCat("embedded ", c.embedded_items(), " items as version ",
                           c.embedding_version(), " in ", done.elapsed_seconds(), " s, objective ",
                           done.objective(), "\naffinities ", Printable(done.plan()), "\n")};
  AddAlignment(context, transport, c, &result);
  return result;
}

absl::Status Health(Context& context, const std::string& collection) {
  const absl::StatusOr<Transport> transport = Transport::Create(context.connection);
  if (!transport.ok()) {
    // A wrong file or flag is no failure of the server: a supervisor must not restart it.
    PrintError(transport.status(), context.json);
    context.exit_code = kExitUsage;
    return absl::OkStatus();
  }
  PM_ASSIGN_OR_RETURN(const bool read_only, transport->IsReadOnly());
  PM_ASSIGN_OR_RETURN(const bool serving, transport->IsServing(collection));
  if (serving) {
    return Finish(context,
                  Result{{{"status", "SERVING"}, {"read_only", read_only}},
                         read_only ? "SERVING, read-only: its disk is full\n" : "SERVING\n"});
  }
  return absl::UnavailableError(
      collection.empty()
          ? "the server is not serving: it is ending"
          : absl::StrCat("collection ", collection,
                         " is not serving: it is not built, or the server is ending"));
}

std::string StartName(const v1::EmbeddingSettings& settings) {
  return cli::NameOf(kStartNames, settings.start() == v1::START_CLASSES ? StartKind::kClasses
                                                                        : StartKind::kRandom);
}

std::string MetricName(v1::Metric metric) {
  return cli::NameOf(kMetricNames, FromProto(metric).value_or(Metric::kCosine));
}

// "lemons  3 items, dimension not fixed yet, no anchors", and what they are for.
std::string CountsText(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  const std::string items = Counted(c.items(), "item");
  if (p.anchor_count() == 0) {
    const std::string dimension =
        p.feature_dim() == 0 ? "dimension not fixed yet" : Counted(p.feature_dim(), "dimension");
    return absl::StrCat(items, ", ", dimension, ", no anchors\n");
  }
  const std::string classes =
      p.slot_labels().empty() ? "no classes" : absl::StrCat(p.slot_labels_size(), " classes");
  return absl::StrCat(items, ", ", c.embedded_items(), " embedded (version ", c.embedding_version(),
                      "), ", classes, ", ", Counted(p.anchor_count(), "anchor"), ", ",
                      p.feature_dim(), " -> ", p.settings().embedding_dim(), " dimensions\n");
}

std::string OfferText(const v1::PublicParameters& p) {
  std::string text = absl::StrCat("  offers ", absl::StrJoin(OfferedSchemes(p), ", "));
  if (p.with_encrypted()) {
    absl::StrAppend(&text, " (by ", MetricName(p.metric()),
                    "; all ids, labels and payloads are readable by every searcher)");
  }
  return text + "\n";
}

std::string SettingsText(const v1::EmbeddingSettings& s) {
  return absl::StrCat("  kernel ", v1::Kernel_Name(s.kernel()), ", bandwidth ",
                      s.kernel_bandwidth(), "; label graph ", v1::LabelGraph_Name(s.label_graph()),
                      ", alpha ", s.alpha(), "; ", Counted(s.steps(), "step"), ", start ",
                      StartName(s), ", stddev ", s.start_stddev(),
                      s.normalise() ? "" : ", not normalised", "\n");
}

}  // namespace

std::string CodeName(v1::CellCode code) {
  for (const auto& [name, known] : kCellCodeNames) {
    if (ToProto(*known) == code) return name;
  }
  return "";
}

nlohmann::json ToJson(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  nlohmann::json json = {
      {"name", c.name()},
      {"uuid", p.collection_uuid()},
      {"digest", absl::BytesToHexString(c.fingerprint())},
      {"items", c.items()},
      {"embedded", c.embedded_items()},
      {"version", c.embedding_version()},
      {"changes_since_embedding", c.changes_since_embedding()},
      {"build_share", c.has_build_share() ? nlohmann::json(c.build_share()) : nullptr},
      {"index", c.index()},
      {"classes", p.slot_labels_size()},
      {"anchors", p.anchor_count()},
      {"feature_dim", p.feature_dim() == 0 ? nlohmann::json() : nlohmann::json(p.feature_dim())},
      {"schemes", OfferedSchemes(p)},
      {"default_scheme", NameOf(DefaultScheme(OfferedSchemes(p)))},
      {"metric", MetricName(p.metric())},
      {"with_encrypted", p.with_encrypted()},
      {"cells", CellCounts(p)},
      {"cell_code", CodeName(p.cell_code())},
      {"cell_code_error", CodeError(p)},
      {"cells_status", CellsStatusName(c)},
      {"cells_state", c.cells()},
      {"cells_ready", AreCellsReady(c)},
      {"publish_quality", p.publish_quality()},
      {"extractor", p.extractor()},
      {"class_names", std::vector<std::string>(p.class_names().begin(), p.class_names().end())}};
  if (p.anchor_count() == 0) return json;
  const v1::EmbeddingSettings& s = p.settings();
  json["embedding_dim"] = s.embedding_dim();
  json["kernel_bandwidth"] = s.kernel_bandwidth();
  json["alpha"] = s.alpha();
  json["kernel"] = v1::Kernel_Name(s.kernel());
  json["label_graph"] = v1::LabelGraph_Name(s.label_graph());
  json["steps"] = s.steps();
  json["start"] = StartName(s);
  json["start_stddev"] = s.start_stddev();
  json["normalise"] = s.normalise();
  return json;
}

std::string CollectionToText(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  const std::string name = Printable(c.name());
  std::string text = absl::StrCat(name, "  ", CountsText(c), OfferText(p));
  if (c.has_build_share()) {
    absl::StrAppendFormat(&text, "  a build runs: %.0f %%\n", 100 * c.build_share());
  }
  if (c.has_changes() && c.changes_since_embedding() > 0) {
    absl::StrAppend(&text, "  not embedded yet: ", c.changes().inserted(), " inserted, ",
                    c.changes().updated(), " updated (found in their former state), ",
                    c.changes().deleted(), " deleted (no longer found): privatemail build ", name,
                    "\n");
  }
  if (!c.index().empty()) absl::StrAppend(&text, "  index ", Printable(c.index()), "\n");
  absl::StrAppend(&text, "  uuid ", Printable(p.collection_uuid()), "\n  digest ",
                  absl::BytesToHexString(c.fingerprint()), "\n  extractor ",
                  Printable(p.extractor()), "\n");
  if (p.anchor_count() > 0) text += SettingsText(p.settings());
  if (p.cell_partitions().empty()) return text;
  absl::StrAppend(&text, "  cells ", absl::StrJoin(CellCounts(p), ", "), ", items as ", CodeText(p),
                  ", readable by every searcher",
                  c.cells().empty() ? "" : absl::StrCat("; ", Printable(c.cells())),
                  p.publish_quality() ? "; quality published for `privatemail plan`" : "", "\n");
  return text;
}

absl::StatusOr<v1::BuildEmbeddingResponse> BuildWithProgress(const Transport& transport,
                                                             const std::string& name,
                                                             bool accept_misalignment) {
  ProgressBar bar("embedding");
  const auto show = [&](const v1::BuildEmbeddingResponse& message) {
    const auto rows = static_cast<int64_t>(message.rows());
    bar.Show(static_cast<int64_t>(message.share() * static_cast<double>(rows)), rows);
  };
  return transport.BuildEmbedding(name, show, accept_misalignment);
}

void AddCollectionCommands(CLI::App& app, Context& context) {
  CLI::App* collection = AddCommand(app, "collection", "Create, list, show and delete collections");
  collection->require_subcommand(1);
  AddCreateCollectionCommand(*collection, context);
  auto name = std::make_shared<std::string>();
  SetRun(AddCommand(*collection, "list", "All collections"), context, name, &ListCollections);
  const auto add = [&](CLI::App& parent, const char* verb, const char* description, auto run) {
    CLI::App* command = AddCommand(parent, verb, description);
    command->add_option("NAME", *name, "The collection")->required();
    SetRun(command, context, name, run);
  };
  add(*collection, "info", "Public parameters and counts", &CollectionInfo);
  auto deletion = std::make_shared<DeleteOptions>();
  CLI::App* remove = AddCommand(*collection, "delete",
                                "Delete a collection and its items, after you type its name");
  remove->add_option("NAME", deletion->name, "The collection")->required();
  remove->add_flag("--yes", deletion->yes,
                   "Delete without confirmation; required if standard input is no terminal");
  SetRun(remove, context, deletion, &DeleteCollection);
  auto building = std::make_shared<BuildOptions>();
  CLI::App* build = AddCommand(app, "build", "Embed gallery and anchors; searches need it");
  build->add_option("NAME", building->name, "The collection")->required();
  build->add_flag(kAcceptMisalignmentFlag, building->accept_misalignment,
                  "Build even if the items' labels do not seem to mean the anchors' classes");
  SetRun(build, context, building, &Build);

  CLI::App* health = AddCommand(
      app, "health",
      "For probes: exit code 0 if the server serves, 1 if not, 2 if a file or flag is wrong "
      "and nothing was sent. Needs no key");
  health->add_option("--collection", *name,
                     "Also check that this collection is built; needs a key for it");
  health->callback(
      [&context, name] { context.run = [&context, name] { return Health(context, *name); }; });
}

}  // namespace privatemail::client::cli

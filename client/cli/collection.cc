#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/inputs.h"
#include "client/cli/names.h"
#include "client/cli/numbers.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/numerics/usual_alpha.h"
#include "common/protocol/codec.h"
#include "common/protocol/public_parameters.h"

namespace privatemail::cli {
namespace {

// Short names of codes; none: not given.
const std::map<std::string, std::optional<CellCode>> kCellCodeNames = {
    {"float16", CellCode::kFloat16}, {"scalar8", CellCode::kScalar8}};

struct CreateOptions {
  std::string name;
  std::string anchors_file;
  std::string labels_file;
  std::string anchor_images;
  std::string extractor_name = "vectors";
  ExtractorOptions extractor;
  EmbeddingSettings settings;
  bool alpha_given = false;
  std::vector<int64_t> cells;
  std::optional<CellCode> cell_code;
};

std::vector<uint32_t> CellCounts(const v1::PublicParameters& p) {
  std::vector<uint32_t> counts;
  for (const v1::CellPartition& partition : p.cell_partitions())
    counts.push_back(partition.cells());
  return counts;
}

// "float16"; empty where there are no cells.
std::string CodeName(v1::CellCode code) {
  for (const auto& [name, known] : kCellCodeNames) {
    if (ToProto(*known) == code) return name;
  }
  return "";
}

nlohmann::json ToJson(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  return {
      {"name", c.name()},
      {"uuid", p.collection_uuid()},
      {"digest", absl::BytesToHexString(c.fingerprint())},
      {"items", c.items()},
      {"embedded", c.embedded_items()},
      {"version", c.embedding_version()},
      {"changes_since_embedding", c.changes_since_embedding()},
      {"index", c.index()},
      {"classes", p.slot_labels_size()},
      {"anchors", p.anchor_count()},
      {"feature_dim", p.feature_dim()},
      {"embedding_dim", p.settings().embedding_dim()},
      {"kernel_bandwidth", p.settings().kernel_bandwidth()},
      {"alpha", p.settings().alpha()},
      {"kernel", v1::Kernel_Name(p.settings().kernel())},
      {"label_graph", v1::LabelGraph_Name(p.settings().label_graph())},
      {"steps", p.settings().steps()},
      {"start_stddev", p.settings().start_stddev()},
      {"normalise", p.settings().normalise()},
      {"cells", CellCounts(p)},
      {"cell_code", CodeName(p.cell_code())},
      {"cells_state", c.cells()},
      {"cells_ready", c.cells_ready()},
      {"extractor", p.extractor()},
      {"class_names", std::vector<std::string>(p.class_names().begin(), p.class_names().end())}};
}

void Print(const v1::GetCollectionResponse& c) {
  const v1::PublicParameters& p = c.parameters();
  const v1::EmbeddingSettings& s = p.settings();
  std::cout << Printable(c.name()) << "  " << Counted(c.items(), "item") << ", "
            << c.embedded_items() << " embedded (version " << c.embedding_version() << "), "
            << p.slot_labels_size() << " classes, " << Counted(p.anchor_count(), "anchor") << ", "
            << p.feature_dim() << " -> " << s.embedding_dim() << " dimensions\n";
  if (c.has_changes() && c.changes_since_embedding() > 0) {
    std::cout << "  not embedded yet: " << c.changes().inserted() << " inserted, "
              << c.changes().updated() << " updated (found as they were), " << c.changes().deleted()
              << " deleted (not found any more): privatemail build " << Printable(c.name()) << "\n";
  }
  if (!c.index().empty()) std::cout << "  index " << Printable(c.index()) << "\n";
  std::cout << "  uuid " << Printable(p.collection_uuid()) << "\n  digest "
            << absl::BytesToHexString(c.fingerprint()) << "\n  extractor "
            << Printable(p.extractor()) << "\n  kernel " << v1::Kernel_Name(s.kernel())
            << ", bandwidth " << s.kernel_bandwidth() << "; label graph "
            << v1::LabelGraph_Name(s.label_graph()) << ", alpha " << s.alpha() << "; "
            << Counted(s.steps(), "step") << ", start stddev " << s.start_stddev()
            << (s.normalise() ? "" : ", not normalised") << "\n";
  if (p.cell_partitions().empty()) return;
  std::cout << "  cells " << absl::StrJoin(CellCounts(p), ", ") << ", items as "
            << CodeName(p.cell_code()) << " for whoever may search"
            << (c.cells().empty() ? "" : absl::StrCat("; ", Printable(c.cells()))) << "\n";
}

absl::Status FillAnchors(const CreateOptions& options, v1::CreateCollectionRequest* request) {
  if (options.anchor_images.empty()) {
    PM_ASSIGN_OR_RETURN(const FloatMatrix anchors, ReadVectors(options.anchors_file));
    PM_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, ReadLabels(options.labels_file));
    ToProto(anchors, request->mutable_anchors());
    request->mutable_anchor_labels()->Assign(labels.begin(), labels.end());
    request->set_extractor(options.extractor_name);
    return absl::OkStatus();
  }
  PM_ASSIGN_OR_RETURN(const ImageFolder folder, ListImageFolder(options.anchor_images));
  PM_ASSIGN_OR_RETURN(const auto extractor, MakeExtractor(options.extractor));
  PM_ASSIGN_OR_RETURN(const FolderFeatures anchors, DescribeFolder(folder, options.extractor));
  ToProto(anchors.features, request->mutable_anchors());
  request->mutable_anchor_labels()->Assign(anchors.labels.begin(), anchors.labels.end());
  request->mutable_class_names()->Assign(folder.class_names.begin(), folder.class_names.end());
  request->set_extractor(extractor->identity());
  return absl::OkStatus();
}

std::string SettingsWarning(const EmbeddingSettings& settings, double span) {
  if (settings.label_graph != LabelGraphKind::kDistance || !(settings.alpha * span < 40)) return "";
  return absl::StrCat("alpha ", settings.alpha, " is too small to tell ", span,
                      " classes apart with the distance graph, and a private query will hardly "
                      "find its class: use --alpha ",
                      std::ceil(600 / span) / 10, " or more");
}

absl::Status CheckOptions(const CreateOptions& options) {
  const bool vectors = !options.anchors_file.empty();
  const bool labels = !options.labels_file.empty();
  const bool images = !options.anchor_images.empty();
  if (images != vectors && vectors == labels) return absl::OkStatus();
  const char* missing = images || vectors == labels ? ""
                        : vectors                   ? "; --anchor-labels is missing"
                                                    : "; --anchors is missing";
  return absl::InvalidArgumentError(
      absl::StrCat("give either --anchors with --anchor-labels, or --anchor-images", missing));
}

absl::Status CheckLabels(const v1::CreateCollectionRequest& request) {
  for (int i = 0; i < request.anchor_labels_size(); ++i) {
    if (request.anchor_labels(i) >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("labels must be 0 or more, but --anchor-labels has ", request.anchor_labels(i),
                     " in row ", i));
  }
  return absl::OkStatus();
}

absl::Status FillCells(const CreateOptions& options, v1::CreateCollectionRequest* request) {
  if (options.cells.empty() == options.cell_code.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("give --cells and --cell-code together, but --",
                                                   options.cells.empty() ? "cells" : "cell-code",
                                                   " is missing"));
  }
  for (const int64_t count : options.cells) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("--cells", count, 2, kMaxCells));
    request->add_cells(static_cast<uint32_t>(count));
  }
  if (options.cell_code) request->set_cell_code(ToProto(*options.cell_code));
  return absl::OkStatus();
}

absl::Status Create(const Context& context, CreateOptions options) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  v1::CreateCollectionRequest request;
  request.set_name(options.name);
  PM_RETURN_IF_ERROR(FillAnchors(options, &request));
  PM_RETURN_IF_ERROR(CheckLabels(request));
  const double span = SpanOf(request.anchor_labels());
  if (!options.alpha_given) {
    options.settings.alpha = UsualAlpha(options.settings.label_graph, span);
  }
  ToProto(options.settings, request.mutable_settings());
  PM_RETURN_IF_ERROR(FillCells(options, &request));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::CreateCollectionResponse response,
                      transport.CreateCollection(request));
  nlohmann::json answer = ToJson(response.collection());
  if (const std::string warning = SettingsWarning(options.settings, span); !warning.empty()) {
    answer["warnings"] = {warning};
    Warn(warning);
  }
  Answer(context, answer, [&] {
    Print(response.collection());
    if (!options.alpha_given) {
      std::cout << "  alpha " << options.settings.alpha << " was chosen for the labels' span of "
                << span << "; --alpha gives another\n";
    }
  });
  return absl::OkStatus();
}

absl::Status List(const Context& context) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::ListCollectionsResponse response, transport.ListCollections());
  nlohmann::json all = nlohmann::json::array();
  for (const v1::GetCollectionResponse& c : response.collections()) all.push_back(ToJson(c));
  Answer(context, all, [&] {
    for (const v1::GetCollectionResponse& c : response.collections()) Print(c);
    if (response.collections().empty()) std::cout << "no collections\n";
  });
  return absl::OkStatus();
}

absl::Status Info(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse c,
                      transport.GetCollection(name, /*with_changes=*/true));
  nlohmann::json answer = ToJson(c);
  if (c.has_changes())
    answer["changes"] = {{"inserted", c.changes().inserted()},
                         {"updated", c.changes().updated()},
                         {"deleted", c.changes().deleted()}};
  Answer(context, answer, [&] { Print(c); });
  return absl::OkStatus();
}

absl::Status Delete(const Context& context, const std::string& name) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::DeleteCollectionResponse response,
                      transport.DeleteCollection(name));
  Answer(context, {{"deleted_items", response.deleted_items()}}, [&] {
    std::cout << "deleted " << name << " with " << Counted(response.deleted_items(), "item")
              << "\n";
  });
  return absl::OkStatus();
}

void AddCreate(CLI::App& parent, Context& context) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* create = AddCommand(parent, "create", "Make a collection out of public anchors");
  create->add_option("NAME", options->name, "Name of the new collection")->required();
  create->add_option("--anchors", options->anchors_file, "Public vectors (.npy .fvecs .csv)");
  create->add_option("--anchor-labels", options->labels_file,
                     "Their labels (.npy .ivecs .csv .txt)");
  create
      ->add_option("--extractor", options->extractor_name,
                   "How your own vectors were made; searchers compare it")
      ->capture_default_str();
  create->add_option("--anchor-images", options->anchor_images,
                     "Folder of public images, one sub-folder a class");
  AddExtractorOptions(create, &options->extractor);
  EmbeddingSettings& s = options->settings;
  create->add_option("--bandwidth", s.kernel_bandwidth, "Kernel bandwidth over unit vectors")
      ->capture_default_str();
  CLI::Option* alpha = create->add_option(
      "--alpha", s.alpha,
      "Weight of the label graph; if absent 60 / (largest label - smallest + 1) for the distance "
      "graph, .6 for the others");
  create->add_option("--dim", s.embedding_dim, "Dimensions of the embedding")
      ->capture_default_str();
  create->add_option("--steps", s.steps, "Iterations on either side")->capture_default_str();
  create->add_option("--start-stddev", s.start_stddev, "Standard deviation of the start")
      ->capture_default_str();
  AddChoice(create, "--label-graph", &s.label_graph, kLabelGraphNames, "Graph over the labels");
  AddChoice(create, "--kernel", &s.kernel, kKernelNames, "Denominator of the feature kernel");
  create->add_flag_callback(
      "--no-normalise", [&s] { s.normalise = false; },
      "Do not scale the iterates to Frobenius norm sqrt(n)");
  AddNumbers(create, "--cells", &options->cells,
             "Cut the anchors into so many cells, for queries with --scheme cells; several numbers "
             "make several partitions. EVERY SEARCHER CAN THEN TAKE VECTORS OF THE GALLERY, as "
             "exact as --cell-code says: the items of any cells it asks for");
  AddChoice(create, "--cell-code", &options->cell_code, kCellCodeNames,
            "With --cells: how vectors leave (2 bytes a dimension, or 1 and 4 more)");
  create->callback([&context, options, alpha] {
    options->alpha_given = alpha->count() > 0;
    context.run = [&context, options] { return Create(context, *options); };
  });
}

}  // namespace

void AddCollectionCommand(CLI::App& app, Context& context) {
  CLI::App* collection = AddCommand(app, "collection", "Create, list, show and delete collections");
  collection->require_subcommand(1);
  AddCreate(*collection, context);
  AddCommand(*collection, "list", "All collections")->callback([&context] {
    context.run = [&context] { return List(context); };
  });
  auto name = std::make_shared<std::string>();
  for (const auto& [verb, description, run] :
       {std::tuple{"info", "Public parameters and counts", &Info},
        std::tuple{"delete", "Delete a collection and its items", &Delete}}) {
    CLI::App* command = AddCommand(*collection, verb, description);
    command->add_option("NAME", *name, "The collection")->required();
    command->callback([&context, name, run = run] {
      context.run = [&context, name, run] { return run(context, *name); };
    });
  }
}

}  // namespace privatemail::cli

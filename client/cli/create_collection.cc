#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/cli/collection.h"
#include "client/cli/flags.h"
#include "client/cli/images.h"
#include "client/schemes/class_labels.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/cells/cell_partition.h"
#include "common/embedding/default_settings.h"
#include "common/features/feature_extractor.h"
#include "common/features/vector_file.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

struct CreateOptions {
  std::string name;
  std::string anchors_file;
  std::string labels_file;
  std::string anchor_images;
  std::string extractor_name = "vectors";
  ExtractorOptions extractor;
  EmbeddingSettings settings;
  const CLI::App* flags = nullptr;  // which of them are given
  std::vector<int64_t> cells;
  std::optional<CellCode> cell_code;
  bool publish_quality = false;
  Metric metric = Metric::kCosine;
  bool with_encrypted = false;

  bool HasAnchors() const { return !anchors_file.empty() || !anchor_images.empty(); }
  bool HasLabels() const { return !labels_file.empty() || !anchor_images.empty(); }
};

constexpr const char* kSettingFlags[] = {"--bandwidth", "--dim",          "--label-graph",
                                         "--kernel",    "--start",        "--start-stddev",
                                         "--alpha",     "--no-normalise", "--steps"};

// A model that was trained with other values finds poor matches, and no error says why.
void WarnOfMissingProfile(const std::string& model) {
  if (model.empty()) return;
  const std::string profile = ModelProfilePath(FindModel(model).value_or(model));
  if (std::filesystem::exists(profile)) return;
  Warn(absl::StrCat("there is no ", profile,
                    ", so the model gets values from -1 to 1, (channel - 127.5) / 127.5: if it was "
                    "trained otherwise, write its mean and std there and create the collection "
                    "again"));
}

absl::Status FillAnchors(const CreateOptions& options, v1::CreateCollectionRequest* request) {
  const bool images = !options.anchor_images.empty();
  ImageFolder folder;
  if (images) {
    PM_ASSIGN_OR_RETURN(folder, ListImageFolder(options.anchor_images));
    PM_RETURN_IF_ERROR(RequireClasses(options.anchor_images, &folder));
  }
  request->set_extractor(options.extractor_name);
  // Without anchors the collection's extractor is that of --model, if it is given.
  if (images || (options.anchors_file.empty() && !options.extractor.model.empty())) {
    PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(options.extractor));
    request->set_extractor(extractor->identity());
    WarnOfMissingProfile(options.extractor.model);
  }
  if (!options.anchors_file.empty()) {
    PM_ASSIGN_OR_RETURN(const FloatMatrix anchors, ReadVectors(options.anchors_file));
    ToProto(anchors, request->mutable_anchors());
  }
  if (!options.labels_file.empty()) {
    const int64_t anchors = request->has_anchors() ? request->anchors().rows() : -1;
    PM_ASSIGN_OR_RETURN(const LabelColumn column, ReadLabels(options.labels_file, anchors));
    PM_ASSIGN_OR_RETURN(const NamedLabels named, NumberClasses("--anchor-labels", column));
    request->mutable_anchor_labels()->Assign(named.labels.begin(), named.labels.end());
    request->mutable_class_names()->Assign(named.class_names.begin(), named.class_names.end());
  }
  if (!images) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(const FolderFeatures anchors,
                      ExtractFolderFeatures(folder, options.extractor));
  if (!anchors.rejected.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--anchor-images: every anchor must be readable, since a collection keeps its "
                     "anchors, but ",
                     anchors.rejected.size(), " are not; the first: ", anchors.rejected[0].reason));
  }
  ToProto(anchors.features, request->mutable_anchors());
  request->mutable_anchor_labels()->Assign(anchors.labels.begin(), anchors.labels.end());
  request->mutable_class_names()->Assign(folder.class_names.begin(), folder.class_names.end());
  return absl::OkStatus();
}

// usual: DefaultAlpha.
std::string SettingsWarning(const EmbeddingSettings& settings, double usual) {
  if (settings.label_graph != LabelGraphKind::kDistance || !(settings.alpha < usual * 2 / 3)) {
    return "";
  }
  return absl::StrCat("alpha ", settings.alpha,
                      " is too small to tell the classes apart with the distance graph, and a "
                      "private query will hardly find its label: use --alpha ",
                      std::ceil(10 * usual) / 10, " or more");
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
  if (options.cells.empty()) return absl::OkStatus();
  for (const int64_t count : options.cells) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("--cells", count, 2, kMaxCells));
    request->add_cells(static_cast<uint32_t>(count));
  }
  request->set_cell_code(ToProto(options.cell_code.value_or(CellCode::kScalar8)));
  request->set_publish_quality(options.publish_quality);
  return absl::OkStatus();
}

// usual_alpha: DefaultAlpha.
absl::Status FillSettings(double usual_alpha, CreateOptions* options,
                          v1::CreateCollectionRequest* request) {
  EmbeddingSettings& settings = options->settings;
  if (!options->HasLabels()) {
    settings = DefaultSettings({});
  } else {
    if (options->flags->count("--alpha") == 0) settings.alpha = usual_alpha;
    if (options->flags->count("--dim") == 0) {
      settings.embedding_dim = DefaultSettings(request->anchor_labels()).embedding_dim;
    }
  }
  PM_RETURN_IF_ERROR(Validate(settings));
  if (options->HasAnchors()) ToProto(settings, request->mutable_settings());
  return absl::OkStatus();
}

absl::StatusOr<Result> Create(const Context& context, CreateOptions options) {
  const std::string setting = FirstGiven(*options.flags, kSettingFlags);
  if (!options.HasLabels() && !setting.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(setting, " needs --anchor-labels"));
  }
  v1::CreateCollectionRequest request;
  request.set_name(options.name);
  PM_RETURN_IF_ERROR(FillAnchors(options, &request));
  PM_RETURN_IF_ERROR(CheckLabels(request));
  const double usual_alpha = DefaultAlpha(options.settings.label_graph, request.anchor_labels());
  PM_RETURN_IF_ERROR(FillSettings(usual_alpha, &options, &request));
  PM_RETURN_IF_ERROR(FillCells(options, &request));
  request.set_metric(ToProto(options.metric));
  request.set_with_encrypted(options.with_encrypted);
  PM_ASSIGN_OR_RETURN(const AdminClient admin, AdminClient::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::CreateCollectionResponse response, admin.CreateCollection(request));
  const Result result = DescribeCollection(response.collection());
  if (const std::string warning = SettingsWarning(options.settings, usual_alpha);
      !warning.empty()) {
    Warn(warning);
  }
  return result;
}

}  // namespace

void AddCreateCollectionCommand(CLI::App& collection, Context& context) {
  const auto [create, options] =
      AddCommand(collection, context, "create",
                 "Create a collection; WITHOUT ANCHORS EVERY SEARCHER CAN READ ALL IDS, LABELS AND "
                 "PAYLOADS, AND COMPUTE ALL VECTORS. Its first item then fixes the dimension",
                 &Create);
  options->flags = create;
  create->add_option("NAME", options->name, "Name of the new collection")->required();
  AddChoice(create, "--metric", &options->metric, kMetricNames, "By what encrypted ranks items");
  create->add_flag(
      "--with-encrypted", options->with_encrypted,
      "With anchors: offer encrypted, too; EVERY SEARCHER CAN THEN READ ALL ITEMS. Their ids, "
      "labels and payloads, and all vectors from as many queries as they have dimensions");
  CLI::Option* anchors =
      create->add_option("--anchors", options->anchors_file,
                         "Public vectors (.npy .npz .fvecs .csv), for joint and cells");
  create
      ->add_option(
          "--anchor-labels", options->labels_file,
          "Their labels, numbers or names (.npy .ivecs .csv .txt), for joint. Without them "
          "give --cells, --with-encrypted or both, for these schemes alone")
      ->needs(anchors);
  create
      ->add_option("--extractor", options->extractor_name,
                   "Name of the model that computed the vectors; searchers must use the same. "
                   "Without anchors --model names it, too")
      ->capture_default_str();
  create
      ->add_option("--anchor-images", options->anchor_images,
                   "Folder of public images, one sub-folder a label")
      ->excludes(anchors);
  AddExtractorOptions(create, &options->extractor);
  AddFeaturesFolderOption(create, &options->extractor);
  constexpr int32_t kManyClasses[] = {0, 1, 2};
  EmbeddingSettings& s = options->settings = DefaultSettings(kManyClasses);
  AddEmbeddingOptions(create, &s);
  create->add_option(
      "--alpha", s.alpha,
      "Weight of the label graph; if absent the number of classes for the balanced graph, 60 / "
      "(largest label - smallest + 1) for the distance graph, .6 for the others");
  create->add_option("--steps", s.steps, "Iterations of client and server")->capture_default_str();
  create->add_flag_callback(
      "--no-normalise", [&s] { s.normalise = false; },
      "Do not normalise the iterates: to Frobenius norm sqrt(n), or with the balanced graph by "
      "their class means");
  AddNumbers(
      create, "--cells", &options->cells,
      "Offer cells, so many of the anchors; EVERY SEARCHER CAN THEN DOWNLOAD VECTORS. Those of the "
      "items of any cells it requests, with the precision of --cell-code; several numbers make "
      "several partitions");
  AddChoice(
      create, "--cell-code", &options->cell_code, kCellCodeNames,
      "With --cells: the code of the vectors sent: 2 bytes a dimension (float16); 1 byte a "
      "dimension and 4 more (scalar8, the default); or 8 to 64 bytes by product quantisation, "
      "trained on at least 624 anchors (pq8 to pq64)");
  create->add_flag(
      "--publish-quality", options->publish_quality,
      "With --cells: publish how well they find items, which `privatemail plan` needs. Means over "
      "at least 1,000 items "
      "of the gallery as queries, to hundredths, measured whenever cells are prepared");
  for (const char* flag : {"--cell-code", "--publish-quality"}) {
    create->get_option(flag)->needs(create->get_option("--cells"));
  }
  MarkRare(create,
           {"--features-folder", "--bandwidth", "--dim", "--label-graph", "--kernel", "--start",
            "--start-stddev", "--alpha", "--steps", "--no-normalise", "--cell-code"});
  create->footer(absl::StrCat(
      "Without anchors only the scheme encrypted is offered. Its searchers learn nothing less than "
      "this: they download all ids, labels and payloads, and can compute all vectors from as many "
      "queries as the vectors have dimensions.\n",
      create->get_footer()));
}

}  // namespace privatemail::client::cli

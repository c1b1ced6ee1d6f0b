#include "client/cli/query_targets.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/flags.h"
#include "client/cli/output.h"
#include "client/schemes/published_collection.h"
#include "client/search/departures.h"
#include "common/base/field_error.h"
#include "common/base/input_file.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

absl::Status CheckOptions(const TargetOptions& options) {
  if (!options.labels.empty() && !options.labels_file.empty()) {
    return absl::InvalidArgumentError("give at most one of --label and --labels");
  }
  const bool images = !options.images.empty();
  if (images && !options.labels_file.empty()) {
    return absl::InvalidArgumentError(
        "--labels is a file for the rows of --vectors: with --image give one --label for all "
        "images or one each");
  }
  if (images != !options.vectors_file.empty() && (!images || options.rows.empty())) {
    return absl::OkStatus();
  }
  if (!options.rows.empty() && !images) {
    return absl::InvalidArgumentError("--row needs the file of --vectors");
  }
  return absl::InvalidArgumentError("give either --vectors, with or without --row, or --image");
}

}  // namespace

absl::StatusOr<std::vector<QueryTarget>> ReadRows(const TargetOptions& options) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  for (const std::string& path : options.images) PM_RETURN_IF_ERROR(CheckImage(path));
  if (!options.images.empty()) return std::vector<QueryTarget>();
  PM_ASSIGN_OR_RETURN(const FloatMatrix vectors, ReadVectors(options.vectors_file));
  LabelColumn labels;
  if (!options.labels_file.empty()) {
    PM_ASSIGN_OR_RETURN(labels, ReadLabels(options.labels_file, vectors.rows()));
    if (std::ssize(labels) != vectors.rows()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--labels must hold one label for each of the ", vectors.rows(),
                       " vectors, but holds ", labels.size()));
    }
  }
  std::vector<QueryTarget> targets;
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, options.rows.Of("--row", vectors.rows()));
  for (const int64_t row : rows) {
    QueryTarget target{.row = row};
    target.target.name = absl::StrCat(options.vectors_file, " row ", row);
    target.target.features = vectors.row(row);
    const auto at = static_cast<size_t>(row);
    if (!labels.names.empty()) target.target.label_text = labels.names[at];
    if (!labels.numbers.empty() && labels.names.empty()) target.target.label = labels.numbers[at];
    targets.push_back(std::move(target));
  }
  return targets;
}

absl::StatusOr<std::vector<QueryTarget>> ReadTargets(const TargetOptions& options,
                                                     const PublicParameters& parameters,
                                                     std::vector<QueryTarget> rows) {
  if (options.images.empty()) return rows;
  ExtractorOptions settings = options.extractor;
  settings.collection = parameters.extractor;
  PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
  PM_RETURN_IF_ERROR(CheckExtractor(parameters, extractor->identity()));
  std::vector<QueryTarget> targets;
  for (const std::string& path : options.images) {
    QueryTarget target{.image = path};
    target.target.name = path;
    const auto start = std::chrono::steady_clock::now();
    PM_ASSIGN_OR_RETURN(target.target.features, extractor->Extract(path));
    target.features_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    targets.push_back(std::move(target));
  }
  return targets;
}

std::vector<std::string> LabelTexts(const std::vector<std::string>& given) {
  if (given != std::vector<std::string>{"-"}) return given;
  // No line is an empty label (refused), not a missing one (guessed).
  return ReadLines("--label", kStandardInput).value_or(std::vector<std::string>{""});
}

void AddFeatureOptions(CLI::App* command, TargetOptions* options) {
  command->add_option("--vectors", options->vectors_file, "Query vectors (.npy .npz .fvecs .csv)");
  static constexpr char kFlags[] = "--row,--rows";
  AddWords(command, kFlags, "ROWS", "Rows of --vectors, one query each: 7, 0-9, 3,7,9-12 or all",
           [options](const std::vector<std::string>& words) {
             absl::StatusOr<RowSelection> rows = RowSelection::Parse(kFlags, words);
             if (!rows.ok()) throw CLI::ConversionError(std::string(rows.status().message()));
             options->rows = *std::move(rows);
           });
  command->add_option("--image", options->images, "Image to search for; may be repeated");
  AddExtractorOptions(command, &options->extractor);
}

void AddTargetOptions(CLI::App* command, TargetOptions* options) {
  AddFeatureOptions(command, options);
  command->add_option(
      "--label", options->labels,
      "Label of the query, number or name. Encrypted: only items with this label, chosen on this "
      "machine. One for all queries or one each; - reads one a line "
      "from standard input, hidden from process lists; see --classes if absent. Never sent, but "
      "mechanisms of Inference Privacy do not hide it");
  command->add_option("--labels", options->labels_file,
                      "File with a label for each row of --vectors");
  command->add_option(
      "--own-anchors", options->own_anchors_file,
      "Joint: features of the collection's anchors, in its order, by the model of "
      "--vectors and --dummies (.npy .npz .fvecs .csv). Public: epsilon protects the "
      "target, not these; not with gauss-input");
}

absl::StatusOr<std::optional<FloatMatrix>> ReadOwnAnchors(const TargetOptions& options) {
  if (options.own_anchors_file.empty()) return std::nullopt;
  if (!options.images.empty()) {
    return InvalidField("own_anchors",
                        "does not apply to --image, whose features are the collection's");
  }
  PM_ASSIGN_OR_RETURN(FloatMatrix own, ReadVectors(options.own_anchors_file));
  return own;
}

absl::Status AddLabels(const TargetOptions& options, std::vector<QueryTarget>* targets) {
  const std::vector<std::string> texts = LabelTexts(options.labels);
  if (texts.size() > 1 && texts.size() != targets->size()) {
    return FieldError(
        "label", absl::StrCat("given once, or once for each of the ", targets->size(), " queries"),
        absl::StrCat("given ", texts.size(), " times"));
  }
  for (size_t i = 0; i < targets->size() && !texts.empty(); ++i) {
    (*targets)[i].target.label_text = texts[texts.size() == 1 ? 0 : i];
  }
  return absl::OkStatus();
}

void WaitForDeparture(const TargetOptions& options, std::chrono::steady_clock::time_point arrived) {
  if (options.images.empty()) return;
  // Photographs of 48 million pixels were seen to take 200 to 750 ms, those of 12 million 60 ms.
  constexpr std::chrono::milliseconds kFirst(1000), kNext(100);
  std::this_thread::sleep_until(NextDeparture(arrived, std::chrono::steady_clock::now(),
                                              kFirst + (std::ssize(options.images) - 1) * kNext));
}

}  // namespace privatemail::client::cli

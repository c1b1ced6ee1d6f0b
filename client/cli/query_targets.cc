#include "client/cli/query_targets.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/flags/numbers.h"
#include "client/schemes/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/items/item_direction.h"

namespace privatemail::client::cli {
namespace {

// "0 lemon, 1 lime, ... (24 in all)": the first classes, with names if there are any.
std::string SomeClasses(const PublicParameters& parameters) {
  constexpr size_t kMaxListed = 8;
  const size_t classes = parameters.slot_labels.size();
  std::vector<std::string> listed;
  for (size_t slot = 0; slot < std::min(classes, kMaxListed); ++slot) {
    listed.push_back(absl::StrCat(parameters.slot_labels[slot]));
    if (!parameters.class_names.empty()) {
      absl::StrAppend(&listed.back(), " ", parameters.class_names[slot]);
    }
  }
  return absl::StrCat(absl::StrJoin(listed, ", "),
                      classes > kMaxListed ? absl::StrCat(", ... (", classes, " in all)") : "");
}

// Refuses rows of a file together with images, and neither of them.
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
  const bool vectors = !options.vectors_file.empty();
  const bool rows = !options.rows.empty();
  if (images != vectors && vectors == rows) return absl::OkStatus();
  if (vectors && !images) {
    return absl::InvalidArgumentError(
        "--vectors needs rows: give --row I, --rows I,J,..., --rows all, or --image instead");
  }
  if (rows && !images) return absl::InvalidArgumentError("--row needs the file of --vectors");
  return absl::InvalidArgumentError("give either --vectors with --row, or --image");
}

absl::StatusOr<std::vector<NamedTarget>> ReadRowsOfFile(const TargetOptions& options,
                                                        Metric metric) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix vectors, ReadVectors(options.vectors_file));
  std::vector<int32_t> labels;
  if (!options.labels_file.empty()) {
    PM_ASSIGN_OR_RETURN(labels, ReadLabels(options.labels_file));
    if (static_cast<Eigen::Index>(labels.size()) != vectors.rows()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--labels must hold one label for each of the ", vectors.rows(),
                       " vectors, but holds ", labels.size()));
    }
  }
  std::vector<NamedTarget> targets;
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, options.rows.Of("--row", vectors.rows()));
  for (const int64_t row : rows) {
    NamedTarget target{.name = absl::StrCat(options.vectors_file, " row ", row), .row = row};
    target.target.features = vectors.row(row);
    PM_RETURN_IF_ERROR(
        CheckHasSimilarity(target.name, metric, target.target.features.data(), vectors.cols()));
    if (!labels.empty()) target.target.label = labels[static_cast<size_t>(row)];
    targets.push_back(std::move(target));
  }
  return targets;
}

absl::StatusOr<std::vector<NamedTarget>> ReadImages(const TargetOptions& options,
                                                    const PublicParameters& parameters) {
  ExtractorOptions settings = options.extractor;
  settings.collection = parameters.extractor;
  PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(settings));
  PM_RETURN_IF_ERROR(CheckExtractor(parameters, extractor->identity()));
  std::vector<NamedTarget> targets;
  for (const std::string& path : options.images) {
    NamedTarget target{.name = path, .image = path};
    const auto start = std::chrono::steady_clock::now();
    PM_ASSIGN_OR_RETURN(target.target.features, extractor->Extract(path));
    target.features_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace

std::vector<std::string> LabelTexts(const std::vector<std::string>& given) {
  if (given != std::vector<std::string>{"-"}) return given;
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  // An empty line is an empty label (refused), not a missing one (guessed).
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

absl::Status CheckLabelCount(size_t labels, size_t queries) {
  if (labels <= 1 || labels == queries) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--label must be given once, or once for each of the ", queries,
                   " queries, but is given ", labels, " times"));
}

absl::StatusOr<int32_t> LabelFrom(const std::string& text, const PublicParameters& parameters) {
  const auto named = std::find(parameters.class_names.begin(), parameters.class_names.end(), text);
  if (named != parameters.class_names.end()) {
    return parameters.slot_labels[static_cast<size_t>(named - parameters.class_names.begin())];
  }
  int32_t label = 0;
  if (!absl::SimpleAtoi(text, &label)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--label must be a number or the name of a class of the collection, but is \"",
                     text, "\"; its classes are ", SomeClasses(parameters)));
  }
  const absl::StatusOr<int64_t> slot = parameters.SlotOf(label);
  if (slot.ok()) return label;
  return absl::InvalidArgumentError(
      absl::StrCat("--", slot.status().message(), "; its classes are ", SomeClasses(parameters)));
}

void AddFeatureOptions(CLI::App* command, TargetOptions* options) {
  command->add_option("--vectors", options->vectors_file,
                      "File of query vectors (.npy .fvecs .csv)");
  constexpr int kMaxWords = 1 << 20;
  static constexpr char kFlags[] = "--row,--rows";
  command
      ->add_option_function<std::vector<std::string>>(
          kFlags,
          [options](const std::vector<std::string>& words) {
            absl::StatusOr<RowSelection> rows = RowSelection::Parse(kFlags, words);
            if (!rows.ok()) throw CLI::ConversionError(std::string(rows.status().message()));
            options->rows = *std::move(rows);
          },
          "Rows of --vectors to search for, one query each: 7, 0-9, 3,7,9-12 or all")
      ->expected(1, kMaxWords)
      ->allow_extra_args(false)
      ->type_name("ROWS");
  command->add_option("--image", options->images, "Image to search for; may be repeated");
  AddExtractorOptions(command, &options->extractor);
}

void AddTargetOptions(CLI::App* command, TargetOptions* options) {
  AddFeatureOptions(command, options);
  command->add_option(
      "--label", options->labels,
      "Class of the query, number or name (encrypted: only items with this label, chosen on this "
      "machine); one for all queries or one each; - reads one a line "
      "from standard input, hidden from process lists; see --classes if absent. Never sent, but "
      "mechanisms of Inference Privacy do not hide it");
  command->add_option("--labels", options->labels_file,
                      "File with a label for each row of --vectors");
}

void AddOwnAnchorsOption(CLI::App* command, TargetOptions* options) {
  command->add_option("--own-anchors", options->own_anchors_file,
                      "Cells with --cell-code none: features of the collection's anchors, in its "
                      "order, by the model of --vectors (.npy .fvecs .csv); never sent");
}

absl::StatusOr<std::optional<FloatMatrix>> ReadOwnAnchors(const TargetOptions& options) {
  if (options.own_anchors_file.empty()) return std::nullopt;
  if (!options.images.empty()) {
    return absl::InvalidArgumentError(
        "--own-anchors is of no use with --image, whose features are the collection's: give "
        "--vectors");
  }
  PM_ASSIGN_OR_RETURN(FloatMatrix own, ReadVectors(options.own_anchors_file));
  return own;
}

absl::StatusOr<std::vector<NamedTarget>> ReadRows(const TargetOptions& options, Metric metric) {
  PM_RETURN_IF_ERROR(CheckOptions(options));
  if (options.images.empty()) return ReadRowsOfFile(options, metric);
  for (const std::string& path : options.images) {
    PM_RETURN_IF_ERROR(CheckImage(path));
  }
  return std::vector<NamedTarget>();
}

absl::StatusOr<std::vector<NamedTarget>> ReadFeatures(const TargetOptions& options,
                                                      const PublicParameters& parameters,
                                                      std::vector<NamedTarget> rows) {
  if (!options.images.empty()) return ReadImages(options, parameters);
  if (!options.own_anchors_file.empty()) return rows;
  for (const NamedTarget& row : rows) {
    const Eigen::RowVectorXf& features = row.target.features;
    PM_RETURN_IF_ERROR(CheckColumns(row.name, parameters.feature_dim, features.size()));
    PM_RETURN_IF_ERROR(
        CheckHasSimilarity(row.name, parameters.metric, features.data(), features.size()));
  }
  return rows;
}

void WaitForDeparture(const TargetOptions& options, std::chrono::steady_clock::time_point arrived) {
  if (options.images.empty()) return;
  // Photographs of 48 million pixels were seen to take 200 to 750 ms, those of 12 million 60 ms.
  constexpr std::chrono::milliseconds kFirst(1000), kNext(100);
  std::this_thread::sleep_until(NextDeparture(arrived, std::chrono::steady_clock::now(),
                                              kFirst + (std::ssize(options.images) - 1) * kNext));
}

absl::StatusOr<std::vector<NamedTarget>> ReadLabelled(const TargetOptions& options,
                                                      const PublicParameters& parameters,
                                                      std::vector<NamedTarget> rows) {
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> targets,
                      ReadFeatures(options, parameters, std::move(rows)));
  const std::vector<std::string> labels = LabelTexts(options.labels);
  PM_RETURN_IF_ERROR(CheckLabelCount(labels.size(), targets.size()));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!labels.empty()) {
      const std::string& text = labels[labels.size() == 1 ? 0 : i];
      PM_ASSIGN_OR_RETURN(targets[i].target.label, LabelFrom(text, parameters));
    } else if (options.labels_file.empty()) {
      targets[i].guessed = true;
    } else if (const auto slot = parameters.SlotOf(targets[i].target.label); !slot.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(targets[i].name, ": ", slot.status().message()));
    }
  }
  return targets;
}

}  // namespace privatemail::client::cli

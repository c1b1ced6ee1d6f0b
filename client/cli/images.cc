#include "client/cli/images.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/flags/numbers.h"
#include "common/base/files.h"
#include "common/base/printable.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::cli {
namespace {

// The file of features that this extractor makes of these images, named by a digest of both; empty
// if there shall be none, or an image cannot be read.
std::string FeaturesFile(const ImageFolder& folder, const ExtractorOptions& options,
                         const FeatureExtractor& extractor) {
  if (options.features_folder.empty()) return "";
  Sha256 digest;
  digest.Add(extractor.identity());
  for (const FolderImage& image : folder.images) {
    const auto bytes = ReadFileBytes(image.path);
    if (!bytes.ok()) return "";
    digest.Add(Sha256::Of(*bytes));
  }
  return absl::StrCat(options.features_folder, "/", absl::BytesToHexString(digest.Digest()),
                      ".npy");
}

// The features in a file of FeaturesFile; none if it is absent or damaged.
std::optional<FolderFeatures> ReadFeatures(const ImageFolder& folder, const std::string& file) {
  auto features = ReadVectors(file);
  const auto rows = static_cast<Eigen::Index>(folder.images.size());
  if (!features.ok() || features->rows() != rows) return std::nullopt;
  FolderFeatures found;
  found.features = *std::move(features);
  for (const FolderImage& image : folder.images) {
    found.ids.push_back(image.id);
    found.labels.push_back(image.label);
  }
  return found;
}

}  // namespace

void AddExtractorOptions(CLI::App* command, ExtractorOptions* options) {
  command->add_option("--model", options->model,
                      "ONNX model for images; built-in descriptor if absent. The collection stores "
                      "the settings below, so ingest and query need only this file");
  command->add_option("--input-size", options->input_size,
                      "The model's input, WIDTHxHEIGHT; if absent, as the file says, or 224x224");
  AddNumbers(command, "--mean", &options->mean,
             "Subtracted from each channel, three numbers; 127.5 if absent");
  command->add_option("--scale", options->scale,
                      "Factor of each channel, after the mean; 1/127.5 if absent");
  command->add_option("--layer", options->layer,
                      "Layer whose output is the features; the last if absent");
  command->add_flag("--bgr", options->bgr, "The model expects blue, green, red");
}

void AddFeaturesFolderOption(CLI::App* command, ExtractorOptions* options) {
  command->add_option(
      "--features-folder", options->features_folder,
      "Existing folder that keeps the features of a folder of images, in the clear, "
      "so that they are not extracted again");
}

absl::StatusOr<std::unique_ptr<FeatureExtractor>> CreateExtractor(const ExtractorOptions& options) {
  const std::optional<OnnxOptions> kept = OnnxOptionsOf(options.collection);
  if (options.model.empty()) {
    if (!kept.has_value()) return MakeBuiltInExtractor();
    return absl::FailedPreconditionError(
        absl::StrCat("--model must be given: the collection's features come from ",
                     Printable(options.collection)));
  }
  OnnxOptions onnx = kept.value_or(OnnxOptions());
  onnx.path = options.model;
  if (options.bgr) onnx.swap_rb = false;
  if (options.scale.has_value()) onnx.scale = *options.scale;
  if (options.layer.has_value()) onnx.layer = *options.layer;
  if (!options.input_size.empty()) {
    PM_ASSIGN_OR_RETURN(const auto size, ParseWidthAndHeight("--input-size", options.input_size));
    std::tie(onnx.input_width, onnx.input_height) = size;
  }
  if (!options.mean.empty() && options.mean.size() != onnx.mean.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mean must be three numbers, but has ", options.mean.size()));
  }
  std::transform(options.mean.begin(), options.mean.end(), onnx.mean.begin(),
                 [](double mean) { return static_cast<float>(mean); });
  return MakeOnnxExtractor(onnx);
}

absl::StatusOr<FolderFeatures> ExtractFolderFeatures(const ImageFolder& folder,
                                                     const ExtractorOptions& options) {
  for (const SkippedImage& skipped : folder.skipped) {
    std::cerr << "skipped " << Printable(skipped.id) << ": " << Printable(skipped.reason) << "\n";
  }
  PM_ASSIGN_OR_RETURN(const auto extractor, CreateExtractor(options));
  const std::string file = FeaturesFile(folder, options, *extractor);
  if (auto found = ReadFeatures(folder, file)) return *std::move(found);
  ProgressBar bar("features");
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PM_ASSIGN_OR_RETURN(FolderFeatures features,
                      ExtractFolder(
                          folder, [&] { return CreateExtractor(options); }, threads,
                          [&](int64_t done, int64_t total) { bar.Show(done, total); }));
  for (const SkippedImage& rejected : features.rejected) {
    std::cerr << "rejected " << Printable(rejected.id) << ": " << Printable(rejected.reason)
              << "\n";
  }
  if (!file.empty() && features.rejected.empty()) {
    PM_RETURN_IF_ERROR(WriteNpy(file, features.features));
  }
  return features;
}

absl::StatusOr<LocalGallery> LocalGallery::Create(const std::string& folder,
                                                  const ExtractorOptions& extractor) {
  LocalGallery gallery;
  PM_ASSIGN_OR_RETURN(gallery.folder_, ListImageFolder(folder));
  PM_ASSIGN_OR_RETURN(gallery.features_, ExtractFolderFeatures(gallery.folder_, extractor));
  PM_ASSIGN_OR_RETURN(gallery.unit_rows_, UnitRows("--compare-images", gallery.features_.features));
  return gallery;
}

std::vector<ReportImage> LocalGallery::Nearest(const Eigen::RowVectorXf& features, int64_t k,
                                               const std::set<std::string>& classes) const {
  const Matrix query = features.cast<double>().normalized();
  std::vector<ReportImage> nearest;
  const auto neighbors = NearestRows(query, unit_rows_, k);
  for (const Neighbor& neighbor : neighbors[0]) {
    nearest.push_back(Picture(features_.ids[static_cast<size_t>(neighbor.row)], classes));
  }
  return nearest;
}

ReportImage LocalGallery::Picture(const std::string& id,
                                  const std::set<std::string>& classes) const {
  const auto image = std::find_if(folder_.images.begin(), folder_.images.end(),
                                  [&](const FolderImage& i) { return i.id == id; });
  return {image == folder_.images.end() ? "" : image->path, id,
          classes.contains(id.substr(0, id.find('/')))};
}

}  // namespace privatemail::client::cli

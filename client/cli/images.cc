#include "client/cli/images.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/flags/numbers.h"
#include "client/samples/sample_images.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::cli {
namespace {

absl::StatusOr<Result> PaintSamples(const Context&, const SampleImageOptions& options) {
  ProgressBar bar("painting");
  PM_RETURN_IF_ERROR(
      WriteSampleImages(options, [&](int done, int total) { bar.Show(done, total); }));
  return Result{.json = {{"out", options.out_dir},
                         {"classes", options.classes},
                         {"per_class", options.per_class}},
                .text = absl::StrCat("painted ", options.classes, " species, ",
                                     Counted(static_cast<uint64_t>(options.per_class), "picture"),
                                     " each, in ", options.out_dir, "\n")};
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
  ProgressBar bar("features");
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PM_ASSIGN_OR_RETURN(FolderFeatures features,
                      ExtractFolder(
                          folder, [&] { return CreateExtractor(options); }, threads,
                          [&](int64_t done, int64_t total) { bar.Show(done, total); }));
  for (const SkippedImage& skipped : folder.skipped) {
    std::cerr << "skipped " << Printable(skipped.id) << ": " << Printable(skipped.reason) << "\n";
  }
  for (const SkippedImage& rejected : features.rejected) {
    std::cerr << "rejected " << Printable(rejected.id) << ": " << Printable(rejected.reason)
              << "\n";
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

void AddSampleImagesCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<SampleImageOptions>();
  CLI::App* paint =
      AddCommand(app, "sample-images", "Paint pictures of invented birds as sample data");
  paint->add_option("--out", options->out_dir, "Folder to create")->required();
  paint->add_option("--classes", options->classes, "Number of species")->capture_default_str();
  paint->add_option("--per-class", options->per_class, "Pictures per species")
      ->capture_default_str();
  paint->add_option("--seed", options->seed, "Seed of the species")->capture_default_str();
  paint->add_option("--size", options->size, "Side length in pixels")->capture_default_str();
  SetRun(paint, context, options, &PaintSamples);
}

}  // namespace privatemail::client::cli

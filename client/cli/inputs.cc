#include "client/cli/inputs.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/flags/numbers.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {

void AddExtractorOptions(CLI::App* command, ExtractorOptions* options) {
  command->add_option("--model", options->onnx.path,
                      "ONNX model for images; built-in descriptor if absent");
  command->add_option("--input-size", options->input_size, "The model's input, WIDTHxHEIGHT");
  AddNumbers(command, "--mean", &options->mean, "Subtracted from each channel, three numbers");
  command->add_option("--scale", options->onnx.scale,
                      "Each channel is multiplied by it, after the mean");
  command->add_option("--layer", options->onnx.layer,
                      "Layer whose values are the features; the output if absent");
  command->add_flag("--bgr", options->bgr, "The model expects blue, green, red");
}

absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeExtractor(const ExtractorOptions& options) {
  if (options.onnx.path.empty()) return MakeBuiltInExtractor();
  OnnxOptions onnx = options.onnx;
  onnx.swap_rb = !options.bgr;
  PM_ASSIGN_OR_RETURN(const auto size, ParseWidthAndHeight("--input-size", options.input_size));
  std::tie(onnx.input_width, onnx.input_height) = size;
  if (!options.mean.empty() && options.mean.size() != onnx.mean.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--mean must be three numbers, but has ", options.mean.size()));
  }
  std::transform(options.mean.begin(), options.mean.end(), onnx.mean.begin(),
                 [](double mean) { return static_cast<float>(mean); });
  return MakeOnnxExtractor(onnx);
}

absl::StatusOr<FolderFeatures> DescribeFolder(const ImageFolder& folder,
                                              const ExtractorOptions& options) {
  ProgressBar bar("features");
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PM_ASSIGN_OR_RETURN(FolderFeatures features,
                      ExtractFolder(
                          folder, [&] { return MakeExtractor(options); }, threads,
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

}  // namespace privatemail::client::cli

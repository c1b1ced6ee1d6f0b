// Where a subcommand's vectors come from: files of vectors, or images and an extractor.
#ifndef PRIVATEMAIL_CLIENT_CLI_INPUTS_H_
#define PRIVATEMAIL_CLIENT_CLI_INPUTS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/features/feature_extractor.h"
#include "common/features/image_folder.h"

namespace privatemail::client::cli {

// --model and how images become its input; without --model the built-in descriptor.
struct ExtractorOptions {
  OnnxOptions onnx;
  std::vector<double> mean;  // of each channel; empty: the one of `onnx`
  std::string input_size = "224x224";
  bool bgr = false;
};

void AddExtractorOptions(CLI::App* command, ExtractorOptions* options);
absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeExtractor(const ExtractorOptions& options);

// The features of a whole folder on all cores, with a progress bar; rejected images go to standard
// error.
absl::StatusOr<FolderFeatures> DescribeFolder(const ImageFolder& folder,
                                              const ExtractorOptions& options);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_INPUTS_H_

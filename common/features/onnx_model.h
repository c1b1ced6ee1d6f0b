// Checks of an ONNX model before OpenCV sees it. Internal to this folder.
#ifndef PRIVATEMAIL_COMMON_FEATURES_ONNX_MODEL_H_
#define PRIVATEMAIL_COMMON_FEATURES_ONNX_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail {

// A model whose weights are all in `bytes`, and what it says of its image.
struct OnnxModel {
  std::string bytes;
  std::string sha256;                // 32 bytes; of the file, then of weights from other files
  int width = 0, height = 0;         // 0: not fixed
  bool channels_last = false;        // batch, height, width, channels
  std::vector<std::string> outputs;  // names
};

// Reads a model, and weights that it keeps in other files of its folder. INVALID_ARGUMENT naming
// the path, besides errors of ReadFileBytes:
// - no ONNX model; weights in a file that is missing, too short or outside of its folder;
//   fewer or more values than their shape says
// - a constant index of a Gather that is out of range
// - a node reads what no input, weight or earlier node gives
// - not exactly one input without weights, or one that is not an image of three channels
absl::StatusOr<OnnxModel> ReadOnnxModel(const std::string& path);

// Lets a child process load and run a model first; see SetModelTrial. `identity`: of its extractor.
// INVALID_ARGUMENT naming the path: what the child said, or how it ended.
absl::Status TryModelInChild(const std::string& path, const std::string& identity);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_ONNX_MODEL_H_

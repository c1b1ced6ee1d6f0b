// Feature extractors for images: a built-in descriptor, and networks in ONNX format run by OpenCV.
//
// Used by the owner of the gallery (to fill it) and by the searcher (for the query), each on their
// own machine. Distances are meaningful only between extractors of the same identity().
#ifndef PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_
#define PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

inline constexpr size_t kMaxImageBytes = size_t{256} << 20;  // of an image file

// Extracts one vector from one image file. Not thread-safe (a network holds its activations): one
// extractor a thread. The vector depends on the image and identity() only.
class FeatureExtractor {
 public:
  virtual ~FeatureExtractor() = default;
  FeatureExtractor(const FeatureExtractor&) = delete;
  FeatureExtractor& operator=(const FeatureExtractor&) = delete;

  // 1 x dim(), finite, not all zero. Images are JPEG, PNG or WebP of at most 256 MiB and
  // 100,000,000 pixels. Grey images are converted to colour, 16 bits to 8; transparent pixels are
  // composited over white; of an animation the first frame is taken; and the camera's orientation
  // (EXIF) is applied. Every message begins with the path.
  // - PERMISSION_DENIED, DATA_LOSS: the file cannot be read
  // - INVALID_ARGUMENT: no such file, a folder, an empty file, one that is too large, damaged,
  //   not an image, or features that are not finite or all zero
  absl::StatusOr<Eigen::RowVectorXf> Extract(const std::string& image_path);
  // Extracts from the bytes of an image file; messages begin with `name`.
  virtual absl::StatusOr<Eigen::RowVectorXf> ExtractBytes(const std::string& name,
                                                          absl::string_view bytes) = 0;

  virtual int dim() const = 0;

  // Names everything that the vectors depend on; equal identities give comparable vectors.
  virtual const std::string& identity() const = 0;

 protected:
  FeatureExtractor() = default;
};

// Decodes an image file. PERMISSION_DENIED, DATA_LOSS, INVALID_ARGUMENT: as
// FeatureExtractor::Extract, but for its features.
absl::Status CheckImage(const std::string& image_path);

// Identity "builtin:hog-colour/1": 548 values of total length 1, about a millisecond an image, no
// model file. Three parts:
// - shape: histograms of oriented gradients (Dalal and Triggs 2005) of the grey image at 64 x 64;
//   zero for an image of one colour
// - layout: mean CIELAB colour of an 8 x 8 grid, centre weighted, relative to mid-grey
// - palette: square roots of a CIELAB histogram, each pixel shared by neighbouring bins; never zero
absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeBuiltInExtractor();

// Preprocessing of an image: it is stretched to input_width x input_height (no cropping), and each
// channel c becomes (value - mean[c]) * scale[c], value in 0..255. The defaults suit networks that
// expect RGB in [-1, 1]. Wrong values are not detected; features get worse.
struct OnnxOptions {
  std::string path;  // the model file
  // Pixels, 1..4096. Both 0: the size that the model states, or 224 x 224 if it states none.
  int input_width = 0;
  int input_height = 0;
  // Not negative; channels in the order of the network.
  std::array<float, 3> mean = {127.5f, 127.5f, 127.5f};
  std::array<float, 3> scale = {1 / 127.5f, 1 / 127.5f, 1 / 127.5f};  // positive
  bool swap_rb = true;  // the network expects RGB; false: BGR
  std::string layer;    // layer or output whose values are the features; empty: the only output
};

// The file of --model: a path, which has a slash or ends in .onnx; or the name of an installed
// model, NAME.onnx of the folder in the environment's PRIVATEMAIL_MODELS, by default
// PREFIX/share/privatemail/models. INVALID_ARGUMENT naming model, the file that is missing and the
// installed models.
absl::StatusOr<std::string> FindModel(const std::string& model);

// NAME.toml of NAME.onnx.
std::string ModelProfilePath(const std::string& path);

// The options that the profile of a model gives, a file of at most 4 KiB; without a profile the
// defaults. Keys, all optional: size = [WIDTH, HEIGHT], mean = [3 numbers], std = [3 numbers of at
// least 1] or scale, channels = "rgb" or "bgr", layer, citation. std: scale[c] becomes 1 / std[c].
// INVALID_ARGUMENT: no TOML, an unknown key or a value of another type; names file, line and key.
absl::StatusOr<OnnxOptions> ReadModelProfile(const std::string& path);

// OpenCV ends the process on some damaged models. MakeOnnxExtractor therefore first tries each in a
// process of its own, and the model's fault is an error. That process runs `command` with two more
// arguments, for TryModel; empty, as by default, it is a fork. Set a command where other threads
// run OpenCV, too: a fork lacks them, and a lock that one holds makes it refuse the model.
void SetModelTrial(std::vector<std::string> command);
// Loads and runs a model in a process of its own, with limits of time and memory, and prints a
// verdict. Returns the exit code.
int TryModel(const std::string& path, const std::string& identity);

// A network on the CPU, with an image of channels first or last as the model states. identity()
// holds the SHA-256 of the model with its weights and every option but the path. The layer's values
// become one row in memory order. Runs the network once to learn dim().
// - PERMISSION_DENIED, DATA_LOSS: the file cannot be read
// - INVALID_ARGUMENT: no such file, an option out of range (message: its name), a model that OpenCV
//   cannot load or run at this input size, weights in a file that is missing, no such layer, or
//   none of several outputs chosen (message: the path)
absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeOnnxExtractor(const OnnxOptions& options);

// The options, without a path, of an identity() that MakeOnnxExtractor made; else none.
std::optional<OnnxOptions> OnnxOptionsOf(absl::string_view identity);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_

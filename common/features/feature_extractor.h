// Feature vectors of images: a built-in descriptor, and any network that OpenCV can load from ONNX.
//
// Which party: the owner of the gallery (to fill the service) and the searcher (to describe the
// query), each on its own machine. Both must use extractors of the same identity(), or distances
// mean nothing.
#ifndef PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_
#define PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_

#include <array>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// Turns one image file into one vector. Not thread-safe: a network keeps its activations. Each
// thread makes its own. The vector depends on the image and identity() only, not on images seen
// before.
class FeatureExtractor {
 public:
  virtual ~FeatureExtractor() = default;
  FeatureExtractor(const FeatureExtractor&) = delete;
  FeatureExtractor& operator=(const FeatureExtractor&) = delete;

  // 1 x dim(), all values finite, not all zero. Grey images count as colour; transparency is
  // dropped; 16 bits become 8; the orientation that a camera noted is applied.
  // PERMISSION_DENIED, DATA_LOSS: the file cannot be read. INVALID_ARGUMENT: no such file, a
  // folder, an empty file, no image, or one whose features are not finite or all zero. Every
  // message begins with the path.
  virtual absl::StatusOr<Eigen::RowVectorXf> Extract(const std::string& image_path) = 0;

  virtual int dim() const = 0;

  // Names everything that the vectors depend on. Equal identities, comparable vectors.
  virtual const std::string& identity() const = 0;

 protected:
  FeatureExtractor() = default;
};

// Identity "builtin:hog-colour/1", 548 values of joint length 1, about a millisecond an image, no
// file needed. Three parts, so that neither shape nor colour decides alone:
//   shape    histograms of oriented gradients (Dalal and Triggs 2005) of the grey image at 64 x 64
//   layout   mean CIELAB colour of an 8 x 8 grid, the middle counting more; mid-grey is the origin
//   palette  square roots of a histogram over CIELAB lightness and chroma, each pixel shared
//   between
//            neighbouring bins
// An image of one colour has no gradients and its shape part is zero; the palette never is.
absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeBuiltInExtractor();

// How an image becomes the input of a network: the image is stretched to input_width x input_height
// (no cropping) and each channel c becomes (value - mean[c]) * scale, value in 0..255. The defaults
// suit networks that expect RGB in [-1, 1], such as MobileNetV2. A wrong value here is no error:
// the features only get worse.
struct OnnxOptions {
  std::string path;        // the model file
  int input_width = 224;   // pixels, 1..4096
  int input_height = 224;  // pixels, 1..4096
  std::array<float, 3> mean = {127.5f, 127.5f,
                               127.5f};  // not negative; channels as the network has them
  float scale = 1 / 127.5f;              // positive
  bool swap_rb = true;  // true: the network expects red, green, blue; false: blue, green, red
  std::string layer;    // the layer whose values are the features; empty: the network's output
};

// A network run on the CPU. identity() holds the SHA-256 of the model file and every option but the
// path. The layer's values become one row in their memory order, whatever their shape.
// PERMISSION_DENIED, DATA_LOSS: the file cannot be read. INVALID_ARGUMENT: no such file, an option
// out of range (message: its name), OpenCV cannot load the model or run it on this input size, or
// there is no such layer (message: the path). Runs the network once to learn dim().
absl::StatusOr<std::unique_ptr<FeatureExtractor>> MakeOnnxExtractor(const OnnxOptions& options);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_FEATURE_EXTRACTOR_H_

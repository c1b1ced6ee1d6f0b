// Decoding of JPEG, PNG and WebP, and conversion of OpenCV's exceptions to statuses. Internal to
// this folder: no public header names an OpenCV type.
#ifndef PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_
#define PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_

#include <exception>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/features/feature_extractor.h"

namespace privatemail {

// Limits besides kMaxImageBytes, checked before a pixel is decoded. A decoder takes the memory of
// its file, and at most 11 bytes a pixel (3 of the image, 4 with its alpha; 6 of a
// progressive JPEG's coefficients, 8 if it is CMYK).
inline constexpr int64_t kMaxImagePixels = 100'000'000;
inline constexpr int64_t kMaxImageSide = 65'535;  // each row takes time
// Images with more pixels are decoded one at a time, so that memory does not grow with the cores.
inline constexpr int64_t kMaxConcurrentPixels = 32'000'000;

// The image of a file's bytes as 8-bit BGR, stretched to `size` by an interpolation of OpenCV.
// Errors: FeatureExtractor::Extract; messages begin with `path`.
absl::StatusOr<cv::Mat> DecodeImage(const std::string& path, absl::string_view bytes, cv::Size size,
                                    int interpolation);

// Returns `feature`. INVALID_ARGUMENT naming the path: it is not finite or all zero.
absl::StatusOr<Eigen::RowVectorXf> ValidateFeature(const std::string& path,
                                                   Eigen::RowVectorXf feature);

// INVALID_ARGUMENT "path: purpose: message", in one line; a message may quote a damaged file.
absl::Status OpenCvError(const std::string& path, absl::string_view purpose, std::string message);

// Returns function(), or OpenCvError of an exception.
template <typename Function>
auto CatchOpenCv(const std::string& path, absl::string_view purpose, Function function)
    -> decltype(function()) {
  try {
    return function();
  } catch (const cv::Exception& error) {
    return OpenCvError(path, purpose, error.err);
  } catch (const std::exception& error) {
    return OpenCvError(path, purpose, error.what());
  }
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_

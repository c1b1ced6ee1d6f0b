// Decoding of images by OpenCV, and conversion of its exceptions to statuses. Internal to this
// folder: no public header names an OpenCV type.
#ifndef PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_
#define PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_

#include <exception>
#include <opencv2/core.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/matrix.h"

namespace privatemail {

// The image of a file's bytes as 8-bit BGR. Errors: FeatureExtractor::Extract; messages begin with
// `path`.
absl::StatusOr<cv::Mat> DecodeImage(const std::string& path, std::string bytes);

// Returns `feature`. INVALID_ARGUMENT naming the path: it is not finite or all zero.
absl::StatusOr<Eigen::RowVectorXf> ValidateFeature(const std::string& path,
                                                   Eigen::RowVectorXf feature);

// Returns function(), or INVALID_ARGUMENT "path: purpose: message of the exception".
template <typename Function>
auto CatchOpenCv(const std::string& path, absl::string_view purpose, Function function)
    -> decltype(function()) {
  try {
    return function();
  } catch (const cv::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", purpose, ": ", error.err));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", purpose, ": ", error.what()));
  }
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_IMAGE_DECODER_H_

// Image files as OpenCV matrices; the border at which OpenCV's exceptions become statuses. Private
// to this room: no public header names an OpenCV type.
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

// The image as 8-bit blue, green, red; errors as FeatureExtractor::Extract says.
absl::StatusOr<cv::Mat> DecodeImage(const std::string& path);

// `feature` once it is found finite and not all zero; INVALID_ARGUMENT naming the path otherwise.
absl::StatusOr<Eigen::RowVectorXf> ValidateFeature(const std::string& path,
                                                 Eigen::RowVectorXf feature);

// The result of `function`, or INVALID_ARGUMENT "path: purpose: what OpenCV said".
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

#include "common/features/image_decoder.h"

#include <limits>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/feature_extractor.h"

namespace privatemail {

absl::StatusOr<Eigen::RowVectorXf> FeatureExtractor::Extract(const std::string& image_path) {
  PM_ASSIGN_OR_RETURN(std::string bytes, ReadFileBytes(image_path));
  return ExtractBytes(image_path, std::move(bytes));
}

absl::StatusOr<cv::Mat> DecodeImage(const std::string& path, std::string bytes) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected an image of less than 2 GiB, got ", bytes.size(), " bytes"));
  }
  return CatchOpenCv(path, "cannot be decoded", [&]() -> absl::StatusOr<cv::Mat> {
    const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1, bytes.data());
    cv::Mat image = cv::imdecode(encoded, cv::IMREAD_COLOR);
    if (image.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": expected an image, but no known format fits its ", bytes.size(),
                       " bytes, or they are damaged"));
    }
    return image;
  });
}

absl::StatusOr<Eigen::RowVectorXf> ValidateFeature(const std::string& path,
                                                   Eigen::RowVectorXf feature) {
  PM_RETURN_IF_ERROR(
      CheckUnitScalable(absl::StrCat(path, ": feature"), feature.data(), feature.size()));
  return feature;
}

}  // namespace privatemail

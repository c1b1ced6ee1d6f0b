#include "client/baselines/baseline.h"

#include <limits>

#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::baselines {

Guarantee NoGuarantee() {
  return {.epsilon = std::numeric_limits<double>::infinity(),
          .delta = 0,
          .neighbours = "none",
          .proven = true,
          .source = "no noise: nothing is promised"};
}

absl::Status CheckSplit(const DataSplit& split, int64_t dimension) {
  const Matrix& gallery = split.gallery.features;
  const Matrix& targets = split.targets.features;
  if (gallery.rows() == 0 || targets.rows() == 0) {
    return absl::InvalidArgumentError(gallery.rows() == 0
                                          ? "gallery must have rows, but has none"
                                          : "targets must have rows, but have none");
  }
  PM_RETURN_IF_ERROR(CheckColumns("targets", gallery.cols(), targets.cols()));
  return CheckIntegerBetween("dimension", dimension, 1, gallery.cols());
}

}  // namespace privatemail::client::baselines

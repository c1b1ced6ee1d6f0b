#include "privatemail/guarantee.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::Status Validate(const Guarantee& guarantee) {
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("epsilon", guarantee.epsilon));
  if (!(guarantee.delta >= 0) || !(guarantee.delta < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta must be at least 0 and below 1, but is ", guarantee.delta));
  }
  if (guarantee.radius.has_value() && !(*guarantee.radius > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("radius must be positive, but is ", *guarantee.radius));
  }
  if (guarantee.radius.has_value() == guarantee.metric.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "radius and metric must come together, but there is ",
        guarantee.metric.empty() ? "a radius without a metric" : "a metric without a radius"));
  }
  if (guarantee.gaussian_mu.has_value()) {
    PM_RETURN_IF_ERROR(CheckFiniteNonNegative("gaussian_mu", *guarantee.gaussian_mu));
  }
  if (guarantee.source.empty()) {
    return absl::InvalidArgumentError(
        "source must name the theorem that the guarantee follows from, but is empty");
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client

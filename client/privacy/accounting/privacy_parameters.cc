#include "client/privacy/accounting/privacy_parameters.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::Status CheckEpsilon(double epsilon) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", epsilon));
  if (epsilon >= 1e-9 && epsilon <= 1e6) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("epsilon must be between 1e-9 and 1e6, but is ", epsilon));
}

absl::Status CheckDelta(double delta) {
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  if (delta >= 1e-300) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("delta must be at least 1e-300, but is ", delta));
}

}  // namespace privatemail::client

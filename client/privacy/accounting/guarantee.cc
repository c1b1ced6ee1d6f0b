#include "privatemail/guarantee.h"

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
absl::Status Validate(const Guarantee& guarantee) {
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("epsilon", guarantee.epsilon));
  PM_RETURN_IF_ERROR(CheckSpentDelta(guarantee.delta));
  if (guarantee.radius.has_value() && !(*guarantee.radius > 0)) {
    return FieldError("radius", "positive", absl::StrCat(*guarantee.radius));
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
    return InvalidField("source",
                        "must name the theorem that the guarantee follows from, but is empty");
  }
  return absl::OkStatus();
}

absl::Status CheckEpsilon(double epsilon) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", epsilon));
  if (epsilon >= 1e-9 && epsilon <= 1e6) return absl::OkStatus();
  return FieldError("epsilon", "between 1e-9 and 1e6", absl::StrCat(epsilon));
}

absl::Status CheckSpentDelta(double delta) {
  if (delta >= 0 && delta < 1) return absl::OkStatus();
  return FieldError("delta", "at least 0 and below 1", absl::StrCat(delta));
}

absl::Status CheckDelta(double delta) {
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  if (delta >= 1e-300) return absl::OkStatus();
  return FieldError("delta", "at least 1e-300", absl::StrCat(delta));
}

std::string NeighboursOfValue(double sensitivity, absl::string_view norm) {
  return absl::StrCat("any two inputs whose values differ by at most ", FormatExact(sensitivity),
                      " in ", norm);
}

std::string NeighboursInBox(absl::Span<const double> lower, absl::Span<const double> upper,
                            double l2_sensitivity) {
  std::string box;
  for (size_t begin = 0, end = 0; begin < lower.size(); begin = end) {
    while (end < lower.size() && lower[end] == lower[begin] && upper[end] == upper[begin]) ++end;
    absl::StrAppend(&box, begin == 0 ? "[" : " x [", FormatExact(lower[begin]), ", ",
                    FormatExact(upper[begin]), "]");
    if (end - begin > 1) absl::StrAppend(&box, "^", end - begin);
  }
  return absl::StrCat("any two inputs whose values, clipped to the box ", box,
                      ", differ by at most ", FormatExact(l2_sensitivity), " in L2");
}

}  // namespace privatemail::client

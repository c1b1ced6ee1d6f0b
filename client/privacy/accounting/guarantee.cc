#include "privatemail/guarantee.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// "A^3 x B".
std::string FormatProduct(size_t sides, absl::FunctionRef<bool(size_t, size_t)> are_equal,
                          absl::FunctionRef<std::string(size_t)> text) {
  std::string product;
  for (size_t begin = 0, end = 0; begin < sides; begin = end) {
    while (end < sides && are_equal(begin, end)) ++end;
    absl::StrAppend(&product, begin == 0 ? "" : " x ", text(begin));
    if (end - begin > 1) absl::StrAppend(&product, "^", end - begin);
  }
  return product;
}

std::string ClippedNeighbours(absl::string_view to, double l2_sensitivity) {
  return absl::StrCat("any two inputs whose values, clipped to ", to, ", differ by at most ",
                      FormatExact(l2_sensitivity), " in L2");
}

}  // namespace

absl::Status Validate(const Guarantee& guarantee) {
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("epsilon", guarantee.epsilon));
  if (!(guarantee.delta >= 0) || !(guarantee.delta < 1)) {
    return InvalidField("delta",
                        absl::StrCat("must be at least 0 and below 1, but is ", guarantee.delta));
  }
  if (guarantee.radius.has_value() && !(*guarantee.radius > 0)) {
    return InvalidField("radius", absl::StrCat("must be positive, but is ", *guarantee.radius));
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
  return InvalidField("epsilon", absl::StrCat("must be between 1e-9 and 1e6, but is ", epsilon));
}

absl::Status CheckDelta(double delta) {
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  if (delta >= 1e-300) return absl::OkStatus();
  return InvalidField("delta", absl::StrCat("must be at least 1e-300, but is ", delta));
}

std::string NeighboursOfValue(double sensitivity, absl::string_view norm) {
  return absl::StrCat("any two inputs whose values differ by at most ", FormatExact(sensitivity),
                      " in ", norm);
}

std::string NeighboursInBox(absl::Span<const double> lower, absl::Span<const double> upper,
                            double l2_sensitivity) {
  const auto are_equal = [&](size_t i, size_t j) {
    return lower[i] == lower[j] && upper[i] == upper[j];
  };
  const auto text = [&](size_t i) {
    return absl::StrCat("[", FormatExact(lower[i]), ", ", FormatExact(upper[i]), "]");
  };
  return ClippedNeighbours(absl::StrCat("the box ", FormatProduct(lower.size(), are_equal, text)),
                           l2_sensitivity);
}

std::string NeighboursInWidths(absl::Span<const double> widths, double l2_sensitivity) {
  const auto are_equal = [&](size_t i, size_t j) { return widths[i] == widths[j]; };
  const auto text = [&](size_t i) { return FormatExact(widths[i]); };
  return ClippedNeighbours(
      absl::StrCat("a box with the widths ", FormatProduct(widths.size(), are_equal, text)),
      l2_sensitivity);
}

}  // namespace privatemail::client

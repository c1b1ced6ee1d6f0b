#include "client/privacy/sensitivity/published_gaussian_sensitivity.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::StatusOr<PublishedGaussianBound> PublishedGaussianSensitivity(int64_t n, double alpha,
                                                                    double bandwidth,
                                                                    int64_t largest_label,
                                                                    double frobenius_norm) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("n", n, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("alpha", alpha));
  PM_RETURN_IF_ERROR(CheckFinitePositive("bandwidth", bandwidth));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("largest_label", largest_label, 0, int64_t{1} << 31));
  PM_RETURN_IF_ERROR(CheckFinitePositive("start's Frobenius norm", frobenius_norm));
  const double s2 = bandwidth * bandwidth;
  const auto rows = static_cast<double>(n);
  const auto c2 = static_cast<double>(largest_label) * static_cast<double>(largest_label);
  const double alpha2 = alpha * alpha;
  // The printed abbreviations: smallest degrees before and after a row is added, and the largest
  // after.
  const double a = rows * std::exp(-2 / s2) + std::expm1(-1 / (2 * s2));
  const double b = (rows + 1) * std::exp(-2 / s2) - 1;
  const double t = rows + std::expm1(-1 / (2 * s2));
  const double label_floor =
      (rows + 1) * std::exp(-c2 / (2 * s2)) - 1;  // negative for many classes
  const double label_edge = std::exp(-(c2 + 4) / (2 * s2));

  PublishedGaussianBound bound;
  bound.m_ii = alpha2 * (std::pow(rows / a, 2) + std::pow(rows / b, 2) -
                         2 * label_floor * label_floor / (rows * t));
  bound.m_ij = (alpha2 + 1) / (a * a) - 2 * alpha * label_edge / (t * t) + (alpha2 + 1) / (b * b) -
               2 * alpha * label_edge / (rows * rows) -
               2 * (alpha2 * std::exp(-c2 / s2) + std::exp(-4 / s2)) / (rows * t) +
               4 * alpha / (a * b);
  bound.m = rows * bound.m_ij + bound.m_ii;
  bound.sensitivity_as_printed = bound.m * std::sqrt(rows + 1) / 2 * frobenius_norm;
  bound.sensitivity_its_proof_supports = std::sqrt(bound.m * (rows + 1)) / 2 * frobenius_norm;
  if (!(bound.sensitivity_as_printed > 0) || !std::isfinite(bound.sensitivity_as_printed)) {
    return absl::FailedPreconditionError(absl::StrCat("the printed formula gives a sensitivity of ",
                                                      bound.sensitivity_as_printed,
                                                      ", expected a positive finite number"));
  }
  return bound;
}

}  // namespace privatemail::client

#include "client/privacy/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/iteration_bounds.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

using iteration_bounds::AffinitySpan;
using iteration_bounds::CheckInputs;
using iteration_bounds::FiniteBound;
using iteration_bounds::InL1;
using iteration_bounds::InL2;
using iteration_bounds::LabelPull;
using iteration_bounds::OperatorNorm;
using iteration_bounds::RowMoves;
using iteration_bounds::SmallestAffinity;

absl::StatusOr<RowMoves> BoundRowMoves(const IterationInputs& in, int changed_rows) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("changed_rows", changed_rows, 1, 2));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in));
  const double c = in.kernel_denominator;
  const auto others = static_cast<double>(in.start.rows() - 1);  // n - 1
  const double t = changed_rows;
  const Vector g = LabelPull(in);
  const double rho = in.start.rowwise().norm().maxCoeff();

  const Vector stays =
      (t * AffinitySpan(in) * (2 * rho + g.array() / (others * m)) / (others * m)).matrix();

  const Matrix centred = in.start.rowwise() - in.start.colwise().mean();
  const double spread = OperatorNorm(centred);
  const double u =
      (others - 1) * -std::expm1(-8 / c) / ((1 + (others - 1) * m) * (m + (others - 1)));
  const double averages = std::min(2 * rho, std::sqrt(others) * u * spread);
  const double largest_pull = g.head(in.slots).maxCoeff();
  return RowMoves{stays, largest_pull * std::expm1(4 / c) / others + averages};
}

}  // namespace

absl::StatusOr<double> ReplaceTargetSensitivity(const IterationInputs& in, int changed_rows) {
  PM_ASSIGN_OR_RETURN(const RowMoves moves, BoundRowMoves(in, changed_rows));
  return InL2(moves, changed_rows);
}

absl::StatusOr<double> ReplaceTargetL1Sensitivity(const IterationInputs& in, int changed_rows) {
  PM_ASSIGN_OR_RETURN(const RowMoves moves, BoundRowMoves(in, changed_rows));
  return InL1(moves, changed_rows, in.start.cols());
}

absl::StatusOr<double> LargestIterateValue(const IterationInputs& in) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in));
  const Vector length = in.start.rowwise().norm();
  const double smallest_degree = static_cast<double>(in.start.rows() - 1) * m;
  return FiniteBound(
      0.5 *
      (length.maxCoeff() + length.array() + LabelPull(in).array() / smallest_degree).maxCoeff());
}

absl::StatusOr<double> IterationRoundingError(const IterationInputs& in, int64_t feature_dim) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in));
  constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;
  const auto n = static_cast<double>(in.start.rows());
  const double affinity_error =
      4 * static_cast<double>(feature_dim + 4) * kUnit / in.kernel_denominator + 8 * kUnit;
  const double rho = in.start.rowwise().norm().maxCoeff();
  const Vector size = (rho + LabelPull(in).array() / ((n - 1) * m)).matrix();
  return FiniteBound((2 * affinity_error + 4 * n * kUnit) * size.norm());
}

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

}  // namespace privatemail

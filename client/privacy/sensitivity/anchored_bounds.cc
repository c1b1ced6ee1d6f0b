#include "client/privacy/sensitivity/anchored_bounds.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/sensitivity/iteration_bounds.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client {
namespace {

using namespace iteration_bounds;

// Bounds the rounding of unit rows of d values, of their mean over P rows, and of products of two
// columns of P rows relative to their lengths: each sums at most max(P, d) terms after at most 16
// other roundings, of rows no longer than 2 (Higham 2002, section 3.1); the Frobenius norm of k
// columns is sqrt(k) of the largest.
double Slack(const AnchoredInputs& in) {
  const auto terms = static_cast<double>(std::max(in.anchors.rows(), in.anchors.cols()) + 16);
  const double rounding = terms * kUnitRoundoff;
  return 4 * std::sqrt(static_cast<double>(in.coordinates.cols())) * rounding / (1 - rounding);
}

// The squared length of a row, and of the difference of two, must be finite.
constexpr double kMaxRowLength = 1e150;

absl::Status CheckInputs(const AnchoredInputs& in) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("kernel denominator", in.kernel_denominator));
  PM_RETURN_IF_ERROR(CheckBetween("kernel denominator", in.kernel_denominator, 0, 1e12));
  if (in.anchors.rows() < 1 || in.coordinates.rows() != in.anchors.rows()) {
    return absl::InvalidArgumentError(
        absl::StrCat("coordinates must be one row for each anchor, at least 1, but are ",
                     in.coordinates.rows(), " for ", in.anchors.rows()));
  }
  if (in.pull.cols() != in.coordinates.cols() || in.pull.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pull must have the coordinates' ", in.coordinates.cols(),
        " columns and a row for each slot, but is ", in.pull.rows(), " x ", in.pull.cols()));
  }
  if (!in.coordinates.allFinite() || !in.pull.allFinite()) {
    return absl::InvalidArgumentError("coordinates and pull must be finite, but are not");
  }
  // Squares are summed: none may underflow or overflow.
  PM_RETURN_IF_ERROR(CheckBetween("largest coordinate of an anchor",
                                  in.coordinates.cwiseAbs().maxCoeff(), 1e-100, 1e100));
  PM_RETURN_IF_ERROR(CheckBetween("largest pull", in.pull.cwiseAbs().maxCoeff(), 0, 1e100));
  return CheckAnchorLengths(in.anchors);
}

// An upper bound on |X|_op: |X|^4 = |X'X|^2 is at most the sum of squares of X'X, whose entries are
// off by at most `slack` times the lengths of their columns.
double OperatorNormBound(const Matrix& x, double slack) {
  const Eigen::MatrixXd gram =
      x.rows() < x.cols() ? Eigen::MatrixXd(x * x.transpose()) : x.transpose() * x;
  return std::sqrt(gram.norm() + slack * x.squaredNorm());
}

// Named as in the header's proof.
struct AnchorSums {
  double covariance = 0;   // |Cov|
  double mean_anchor = 0;  // |p~|
  double averages = 0;     // largest distance between two averages of coordinates
  double degree_low = 0;
  double degree_high = 0;
};

AnchorSums ComputeAnchorSums(const AnchoredInputs& in, double m) {
  const auto count = static_cast<double>(in.anchors.rows());  // P
  const double h = 2 / in.kernel_denominator;
  const RowVector mean_anchor = in.anchors.colwise().mean();
  const Matrix q = in.coordinates.rowwise() - in.coordinates.colwise().mean();
  const Matrix x = in.anchors.rowwise() - mean_anchor;
  const double norm_q = SpectralNormBound(q);
  const double slack = Slack(in);
  const double norm_x = OperatorNormBound(x, slack) + slack * std::sqrt(count);
  const double radius_q = q.rowwise().norm().maxCoeff();
  const double pbar = std::min(1., mean_anchor.norm() + slack);
  const WeightRange weights = NormalizedWeightRange(count, m, AffinitySpan(in.kernel_denominator));
  const double uneven = weights.MaxDeviationNorm(count);

  AnchorSums sums;
  const double known = SpectralNormBound(q.transpose() * x) + slack * std::sqrt(count) * norm_q;
  const double rest = (std::max(weights.above, weights.below) + uneven * uneven) * norm_q * norm_x;
  const double share = std::sqrt(weights.largest);
  const double deviations = std::min(share * norm_q, radius_q) * std::min(share * norm_x, 1.);
  sums.covariance = std::min(known / count + rest, deviations);
  sums.mean_anchor = std::min(1., pbar + uneven * norm_x);
  sums.averages =
      std::min(2 * radius_q, std::sqrt(count) * (weights.above + weights.below) * norm_q);
  sums.degree_low = count * std::exp(-h - h * pbar);
  sums.degree_high =
      count * std::min(1., std::exp(-h) * (std::cosh(h) + pbar * std::sinh(h)) + slack);
  return sums;
}

// Largest length of a slot's row.
absl::StatusOr<double> RowLengthBound(const AnchoredInputs& in, double m, double pull) {
  const auto count = static_cast<double>(in.anchors.rows());
  const double length = in.coordinates.rowwise().norm().maxCoeff() + pull / (count * m);
  if (length <= kMaxRowLength) return length;
  return absl::FailedPreconditionError(
      absl::StrCat("a slot's row may have the length ", length, ", expected at most ",
                   kMaxRowLength, ": alpha is extreme, or kernel_bandwidth too small"));
}

// Rounding error of a row of that length.
double RoundingBound(const AnchoredInputs& in, double length) {
  const auto count = static_cast<double>(in.anchors.rows());
  const auto dim = static_cast<double>(in.anchors.cols());
  const double of_affinity = 9 * (dim + 6) / in.kernel_denominator + 8;
  const double of_terms = std::expm1((of_affinity + count + 1) * kUnitRoundoff);
  return (of_terms / (1 - of_terms) + 3 * kUnitRoundoff) * length;
}

}  // namespace

absl::StatusOr<AnchoredBounds> BoundAnchoredRows(const AnchoredInputs& in) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const AnchorSums sums = ComputeAnchorSums(in, m);
  // 1/D_low - 1/D_high, plus the cancellation error where the two are nearly equal.
  const double uneven_degree =
      (std::max(sums.degree_high - sums.degree_low, 0.) / sums.degree_high + 1e-14) /
      sums.degree_low;

  const Eigen::Index slots = in.pull.rows();
  AnchoredBounds bounds{Vector(slots), Vector(slots), Vector(slots)};
  for (Eigen::Index a = 0; a < slots; ++a) {
    const double pull = in.pull.row(a).norm();
    PM_ASSIGN_OR_RETURN(bounds.speed[a],
                        FiniteBound((sums.covariance + sums.mean_anchor * pull / sums.degree_low) /
                                    in.kernel_denominator));
    PM_ASSIGN_OR_RETURN(
        bounds.range[a],
        FiniteBound(std::min(2 * bounds.speed[a], .5 * (pull * uneven_degree + sums.averages))));
    PM_ASSIGN_OR_RETURN(const double length, RowLengthBound(in, m, pull));
    PM_ASSIGN_OR_RETURN(bounds.rounding[a], FiniteBound(RoundingBound(in, length)));
  }
  return bounds;
}

}  // namespace privatemail::client

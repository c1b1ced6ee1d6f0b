#include "client/privacy/sensitivity/lipschitz.h"

#include <cmath>
#include <numbers>

#include "client/privacy/sensitivity/iteration_bounds.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

using namespace iteration_bounds;

// The largest r exp(-r^2 / c) over distances between unit rows.
double LargestKernelMoment(double c, double m) {
  return c <= 8 ? std::sqrt(c / (2 * std::numbers::e)) : 2 * m;
}

// The largest deviation * v + pull * b over v <= 1 and v^2 + b^2 <= 4.
double LargestOwnMove(double deviation, double pull) {
  if (pull * pull >= 3 * deviation * deviation) return 2 * std::hypot(deviation, pull);
  return deviation + std::numbers::sqrt3 * pull;
}

}  // namespace

absl::StatusOr<ReleaseLipschitz> LipschitzOfRelease(const IterationInputs& in) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const double c = in.kernel_denominator;
  const auto n = static_cast<double>(in.start.rows());
  const double smallest_degree = (n - 1) * m;
  const StartSpread spread = ComputeStartSpread(in.start, m, AffinitySpan(in.kernel_denominator));
  const Vector pull = LabelPull(in) / smallest_degree;
  // |q_a - F_i| <= distance_a + reach_i, and a row moves by `moment` times that.
  const Vector reach = spread.average + pull;
  const double moment = LargestKernelMoment(c, m) / (c * smallest_degree);

  Vector squares(in.slots);
  Vector sums(in.slots);
  for (Eigen::Index a = 0; a < in.slots; ++a) {
    const double own = LargestOwnMove(spread.deviation, pull[a]) / c;
    const double distance = spread.distance[a];
    // The sums over i include row a itself: slightly too large, by one part in n.
    squares[a] = own * own +
                 moment * moment *
                     (n * distance * distance + 2 * distance * reach.sum() + reach.squaredNorm());
    sums[a] = own + moment * (n * distance + reach.sum());
  }
  // A maximum that drops NaN would hide an overflow.
  const double worst_squares = squares.maxCoeff<Eigen::PropagateNaN>();
  const double worst_sum = sums.maxCoeff<Eigen::PropagateNaN>();
  const double root_k = std::sqrt(static_cast<double>(in.start.cols()));
  ReleaseLipschitz constant;
  PM_ASSIGN_OR_RETURN(constant.to_l2, FiniteBound(std::sqrt(worst_squares)));
  PM_ASSIGN_OR_RETURN(constant.to_l1, FiniteBound(root_k * worst_sum));
  return constant;
}

}  // namespace privatemail::client

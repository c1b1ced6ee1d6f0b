#include "client/privacy/sensitivity/lipschitz.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "client/privacy/sensitivity/iteration_bounds.h"
#include "common/base/status_macros.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client {
namespace {

using namespace iteration_bounds;

// Public quantities of the start Q (n x k, n >= 2) under weights p = w / sum w over the n - 1 rows
// other than one's own, each w within [m, 1], 0 < m <= 1: the kernel's range on unit rows. Every p
// is then between p_min = m / (m + n - 2) and p_max = 1 / (1 + (n - 2) m).
struct StartSpread {
  Vector distance;       // n: |q_j - mean Q|
  double radius = 0;     // the largest distance
  double deviation = 0;  // at least the deviation of u.q under p, for every unit u and every p
  Vector average;        // n: at least |average of q under p - mean Q|, row i's own row left out
};

// Proof. Let N = n - 1 and Qc = Q - mean Q. *Deviation:* Var_p(u.q) <= sum p_j (u.(q_j - mean))^2
// <= p_max |Qc u|^2, and at most radius^2. *Average:* the coefficients p_j - 1/N sum to zero, so
// their mean square is a variance of values within [p_min - 1/N, p_max - 1/N], at most (p_max -
// 1/N) (1/N - p_min) (Bhatia and Davis). Hence |sum_j (p_j - 1/N)(q_j - mean Q)| <= sqrt(N (p_max -
// 1/N) (1/N - p_min)) |Qc|_op; the plain average over the other rows is |q_i - mean Q| / N from
// mean Q. The average of points within the radius is itself within it.
StartSpread ComputeStartSpread(const Matrix& start, double m, double span) {
  const auto others = static_cast<double>(start.rows() - 1);  // N
  const Matrix centred = start.rowwise() - start.colwise().mean();
  const double norm = SpectralNormBound(centred);
  const double p_max = 1 / (1 + (others - 1) * m);
  // p_max - 1/N and 1/N - p_min, without cancellation.
  const double above = (others - 1) * span / (others * (1 + (others - 1) * m));
  const double below = (others - 1) * span / (others * (m + (others - 1)));

  StartSpread spread;
  spread.distance = centred.rowwise().norm();
  spread.radius = spread.distance.maxCoeff();
  spread.deviation = std::min(std::sqrt(p_max) * norm, spread.radius);
  const double deviation = std::sqrt(others * above * below) * norm;
  spread.average = (deviation + spread.distance.array() / others).min(spread.radius).matrix();
  return spread;
}

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

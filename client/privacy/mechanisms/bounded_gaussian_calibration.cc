#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// Coordinates of equal width, maximised once.
struct WidthGroup {
  long double width = 0;
  int64_t count = 0;
};

// A concave function of a move 0 <= c <= width at one point.
struct ValueAndSlope {
  long double value = 0;
  long double slope = 0;
};
using ConcaveGain = absl::FunctionRef<ValueAndSlope(long double width, long double move)>;

// A root of a function that falls from positive at `low` to negative at `high`, to one part in
// 10^15 of the bracket, by false position with the Illinois rule. Returns either end of the last
// bracket, so callers must certify what they derive from it.
long double FindRootOfDecreasing(long double low, long double high,
                                 absl::FunctionRef<long double(long double)> function) {
  long double at_low = function(low);
  long double at_high = function(high);
  const long double tolerance = 1e-15L * (high - low);
  int same_side = 0;
  for (int i = 0; i < 100 && high - low > tolerance; ++i) {
    const bool stuck = i > 20 && i % 2 == 0;  // halves a bracket that false position hardly moves
    long double middle = (low * at_high - high * at_low) / (at_high - at_low);
    if (stuck || !(middle > low) || !(middle < high)) middle = (low + high) / 2;
    const long double value = function(middle);
    if (value == 0) return middle;
    if (value > 0) {
      low = middle;
      at_low = value;
      if (same_side == 1) at_high /= 2;
      same_side = 1;
    } else {
      high = middle;
      at_high = value;
      if (same_side == -1) at_low /= 2;
      same_side = -1;
    }
  }
  return std::abs(at_low) < std::abs(at_high) ? low : high;
}

// argmax of gain(c) - l c^2 / 2 on [0, width].
long double BestMove(long double width, long double multiplier, ConcaveGain gain) {
  const auto slope = [&](long double c) { return gain(width, c).slope - multiplier * c; };
  if (slope(width) >= 0) return width;
  if (slope(0) <= 0) return 0;
  return FindRootOfDecreasing(0, width, slope);
}

// Upper bound on max gain(c) - l c^2 / 2, by the tangent at the best move.
long double BestGainBound(long double width, long double multiplier, ConcaveGain gain) {
  const long double p = BestMove(width, multiplier, gain);
  const ValueAndSlope at = gain(width, p);
  const long double top = multiplier > 0 ? std::clamp(at.slope / multiplier, 0.0L, width)
                          : at.slope > 0 ? width
                                         : 0;
  return at.value + at.slope * (top - p) - multiplier * top * top / 2;
}

long double SquaredMoves(const std::vector<WidthGroup>& groups, long double multiplier,
                         ConcaveGain gain) {
  long double sum = 0;
  for (const WidthGroup& group : groups) {
    const long double c = BestMove(group.width, multiplier, gain);
    sum += static_cast<long double>(group.count) * c * c;
  }
  return sum;
}

// The multiplier at which the best moves have the length of the radius; a larger one shortens them.
long double BestMultiplier(const std::vector<WidthGroup>& groups, long double radius,
                           ConcaveGain gain) {
  if (SquaredMoves(groups, 0, gain) <= radius * radius) return 0;
  long double squared_slopes = 0;
  for (const WidthGroup& group : groups) {
    const long double slope = gain(group.width, 0).slope;
    squared_slopes += static_cast<long double>(group.count) * slope * slope;
  }
  // A best move is at most slope / multiplier, so here the moves are too short.
  const long double high = std::log(std::sqrt(squared_slopes) / radius) + 1e-6L;
  const auto excess = [&](long double log_multiplier) {
    return std::log(SquaredMoves(groups, std::exp(log_multiplier), gain) / (radius * radius));
  };
  long double low = high - 1;
  for (int i = 0; i < 12 && !(excess(low) > 0); ++i) low -= 1 << i;
  return std::exp(FindRootOfDecreasing(low, high, excess));
}

// An upper bound on max sum_i gain(width_i, c_i) over 0 <= c_i <= width_i with sum c_i^2 <=
// radius^2, above it by at most the rounding of `gain`.
//
// Proof. For every multiplier l >= 0 and every feasible c, sum gain(c_i) <= l radius^2 / 2 + sum_i
// max_c (gain(c) - l c^2 / 2): weak duality. A concave gain lies below its tangent at any point p,
// so each inner maximum is at most that of gain(p) + gain'(p) (c - p) - l c^2 / 2, a parabola whose
// maximum on [0, width] is known in closed form. So the sum is an upper bound for all
// l and p that a search ends with; at the optimal ones it is the maximum itself, since the function
// is concave and the feasible set has an interior. Convergence of the search affects tightness
// only.
long double SeparableMaximumBound(const std::vector<WidthGroup>& groups, long double radius,
                                  ConcaveGain gain) {
  const long double multiplier = BestMultiplier(groups, radius, gain);
  long double bound = multiplier * radius * radius / 2;
  for (const WidthGroup& group : groups) {
    bound += static_cast<long double>(group.count) * BestGainBound(group.width, multiplier, gain);
  }
  return bound;
}

// Lengths in the units of the value.
struct Problem {
  std::vector<WidthGroup> groups;
  long double diagonal = 0;     // |w|, L2 norm of the widths
  long double sensitivity = 0;  // L2
};

// extra_width and extra_move: added by a grid to every side and to the sensitivity.
absl::StatusOr<Problem> MakeProblem(absl::Span<const double> widths, double l2_sensitivity,
                                    double extra_width = 0, double extra_move = 0) {
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("number of sides", std::ssize(widths), 1, int64_t{1} << 20));
  for (size_t i = 0; i < widths.size(); ++i) {
    PM_RETURN_IF_ERROR(CheckFinitePositive(absl::StrCat("width of side ", i), widths[i]));
  }
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", l2_sensitivity));
  std::map<double, int64_t> count;
  for (const double width : widths) ++count[width];
  Problem problem;
  problem.sensitivity = static_cast<long double>(l2_sensitivity) + extra_move;
  long double squares = 0;
  for (const auto& [width, times] : count) {
    problem.groups.push_back({static_cast<long double>(width) + extra_width, times});
    const long double w = problem.groups.back().width;
    squares += static_cast<long double>(times) * w * w;
  }
  problem.diagonal = std::sqrt(squares);
  return problem;
}

// Mass of N(c, 1) on [0, w], in units of s: the parts on either side of c.
long double Mass(long double w, long double c) {
  constexpr long double kSqrt2 = std::numbers::sqrt2_v<long double>;
  return (std::erf((w - c) / kSqrt2) + std::erf(c / kSqrt2)) / 2;
}

// d/dc ln Mass = (phi(c) - phi(w - c)) / Mass, the difference by expm1 of the smaller one.
long double LogMassSlope(long double w, long double c) {
  constexpr long double kInverseSqrtTwoPi = .39894228040143267793994605993438186848L;
  const long double near = std::min(c, w - c);
  const long double far = std::max(c, w - c);
  const long double difference =
      kInverseSqrtTwoPi * std::exp(-near * near / 2) * -std::expm1((near - far) * w / 2);
  return (c < w - c ? difference : -difference) / Mass(w, c);
}

// k(c) of the header in units of s, plus a bound on its rounding.
ValueAndSlope LossOfMove(long double w, long double c) {
  const long double linear = c * (2 * w - c) / 2;
  return {.value = linear - std::log(Mass(w, c) / Mass(w, 0)) + 1e-17L * (1 + linear),
          .slope = w - c - LogMassSlope(w, c)};
}

// ln Z(c) / Z(0): the only part of the loss that the published theorems compute exactly.
ValueAndSlope MassGainOfMove(long double w, long double c) {
  return {.value = std::log(Mass(w, c) / Mass(w, 0)), .slope = LogMassSlope(w, c)};
}

long double BoundAt(const Problem& problem, long double stddev, ConcaveGain gain) {
  std::vector<WidthGroup> groups = problem.groups;
  for (WidthGroup& group : groups) group.width /= stddev;
  return SeparableMaximumBound(groups, problem.sensitivity / stddev, gain);
}

// The smallest s in about [low, high] with loss(s) <= epsilon, from above; loss falls with s.
absl::StatusOr<double> SmallestStddev(long double low, long double high, double epsilon,
                                      absl::FunctionRef<long double(long double)> loss) {
  const auto excess = [&](long double log_stddev) {
    return std::log(loss(std::exp(log_stddev)) / epsilon);
  };
  long double log_low = std::log(low) - 1e-9L;
  long double log_high = std::log(high) + 1e-9L;
  for (int i = 0; i < 60 && !(excess(log_low) > 0); ++i) log_low -= 1;
  for (int i = 0; i < 60 && !(excess(log_high) < 0); ++i) log_high += 1;
  const long double root = std::exp(FindRootOfDecreasing(log_low, log_high, excess));
  // The guarantee rests on this comparison only.
  for (long double surplus = 1e-9L; surplus < 1e-3L; surplus *= 2) {
    const auto stddev = static_cast<double>(root * (1 + surplus));
    if (std::isnormal(stddev) && loss(stddev) <= epsilon) return stddev;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no standard deviation could be certified for epsilon ", epsilon,
                   ": expected a larger epsilon, fewer sides or widths nearer to each other"));
}

// Loss added by a grid of step g over all coordinates: the last term of the header's proof.
long double GridLoss(const Problem& widened, long double grid_step, long double stddev) {
  const long double g = grid_step / stddev;
  long double loss = 0;
  for (const WidthGroup& group : widened.groups) {
    const long double w = group.width / stddev;
    loss += static_cast<long double>(group.count) * g * g * (1 + w * w) / 8;
  }
  return loss;
}

}  // namespace

absl::StatusOr<std::vector<double>> BoxWidths(absl::Span<const double> lower,
                                              absl::Span<const double> upper) {
  if (lower.size() != upper.size()) {
    return InvalidField("upper", absl::StrCat("must have as many ends as lower's ", lower.size(),
                                              ", but has ", upper.size()));
  }
  std::vector<double> widths;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (!(upper[i] > lower[i]) || !std::isfinite(lower[i]) || !std::isfinite(upper[i])) {
      return absl::InvalidArgumentError(absl::StrCat("side ", i,
                                                     " must be finite with upper above "
                                                     "lower, but runs from ",
                                                     lower[i], " to ", upper[i]));
    }
    const double width = upper[i] - lower[i];
    // Knuth's two-sum: the rounding error decides whether to round up.
    const double back = upper[i] - width;
    const double error = (upper[i] - (width + back)) + (back - lower[i]);
    widths.push_back(error > 0 ? std::nextafter(width, std::numeric_limits<double>::infinity())
                               : width);
  }
  return widths;
}

absl::StatusOr<double> BoundedGaussianStddev(absl::Span<const double> widths, double l2_sensitivity,
                                             double epsilon, double grid_step) {
  const double rounding = grid_step * std::sqrt(static_cast<double>(widths.size()));
  PM_ASSIGN_OR_RETURN(const Problem problem,
                      MakeProblem(widths, l2_sensitivity, grid_step, rounding * (1 + 1e-15)));
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  const auto loss = [&](long double stddev) {
    return BoundAt(problem, stddev, LossOfMove) + GridLoss(problem, grid_step, stddev);
  };
  const long double product = problem.diagonal * std::min(problem.sensitivity, problem.diagonal);
  return SmallestStddev(std::sqrt(product / (2 * epsilon)), std::sqrt(product / epsilon), epsilon,
                        loss);
}

absl::StatusOr<double> PublishedBoundedGaussianStddev(absl::Span<const double> widths,
                                                      double l2_sensitivity, double epsilon) {
  PM_ASSIGN_OR_RETURN(const Problem problem, MakeProblem(widths, l2_sensitivity));
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  const long double printed = (problem.diagonal + problem.sensitivity / 2) * problem.sensitivity;
  // s^2 (epsilon - ln dC(s)) = printed, read as a loss that falls with s.
  const auto loss = [&](long double stddev) {
    return printed / (stddev * stddev) + BoundAt(problem, stddev, MassGainOfMove);
  };
  const long double low = std::sqrt(printed / epsilon);
  return SmallestStddev(low, 2 * low, epsilon, loss);
}

}  // namespace privatemail::client

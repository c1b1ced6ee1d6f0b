// A certified upper bound on the maximum of a separable concave function over a ball in a box.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SEPARABLE_MAXIMUM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SEPARABLE_MAXIMUM_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace privatemail::client {

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
                                  ConcaveGain gain);

// A root of a function that falls from positive at `low` to negative at `high`, to one part in
// 10^15 of the bracket, by false position with the Illinois rule. Returns either end of the last
// bracket, so callers must certify what they derive from it.
long double FindRootOfDecreasing(long double low, long double high,
                                 absl::FunctionRef<long double(long double)> function);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SEPARABLE_MAXIMUM_H_

#include "client/privacy/sensitivity/separable_maximum.h"

#include <algorithm>
#include <cmath>

namespace privatemail::client {
namespace {

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

}  // namespace

long double SeparableMaximumBound(const std::vector<WidthGroup>& groups, long double radius,
                                  ConcaveGain gain) {
  const long double multiplier = BestMultiplier(groups, radius, gain);
  long double bound = multiplier * radius * radius / 2;
  for (const WidthGroup& group : groups) {
    bound += static_cast<long double>(group.count) * BestGainBound(group.width, multiplier, gain);
  }
  return bound;
}

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

}  // namespace privatemail::client

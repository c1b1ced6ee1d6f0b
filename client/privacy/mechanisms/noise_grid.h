// The power-of-two grid on which values and noise are integers.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_NOISE_GRID_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_NOISE_GRID_H_

#include <cmath>
#include <cstdint>

namespace privatemail::client {

// log2 of the grid steps per width of the noise, where 64 bits allow as many.
inline constexpr int kStepsPerWidthLog2 = 30;
// Largest value in steps: 64 bits then hold its sum with any noise that will ever be drawn.
inline constexpr double kLargestValueInSteps = 0x1p61;

struct NoiseGrid {
  int exponent = 0;  // a step is 2^exponent

  double InSteps(double length) const { return std::ldexp(length, -exponent); }
  double Length(double steps) const { return std::ldexp(steps, exponent); }

  // The nearest grid point to a value clipped to [low, high], in steps. fmin and fmax, unlike
  // clamp, also clip NaN.
  int64_t Round(double value, double low, double high) const {
    return static_cast<int64_t>(std::rint(InSteps(std::fmin(std::fmax(value, low), high))));
  }

  // The only rounding after noise was added; exact below 2^53 steps if Real is double.
  template <typename Real>
  Real To(int64_t steps) const {
    return std::ldexp(static_cast<Real>(steps), exponent);
  }
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_NOISE_GRID_H_

// A mechanism whose values and noise are integers on a power-of-two grid.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_GRID_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_GRID_MECHANISM_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "common/base/status_macros.h"

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
};

class GridMechanism final : public Mechanism {
 public:
  // The release of `count` values in steps of the grid, or the error of `bits`.
  using DrawFn =
      std::function<absl::StatusOr<std::vector<int64_t>>(const double* values, BitSource& bits)>;

  GridMechanism(NoiseGrid grid, double noise_stddev, int64_t count, DrawFn draw,
                Guarantee guarantee)
      : Mechanism(std::move(guarantee)),
        grid_(grid),
        noise_stddev_(noise_stddev),
        count_(count),
        draw_(std::move(draw)) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<FloatMatrix>(values, bits);
  }

  absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<Matrix>(values, bits);
  }

  double noise_stddev() const override { return noise_stddev_; }

 private:
  template <typename Released>
  absl::StatusOr<Released> ReleaseAs(const Matrix& values, BitSource& bits) const {
    if (values.size() != count_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mechanism was made for ", count_, " values, but got ", values.size()));
    }
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, draw_(values.data(), bits));
    Released released(values.rows(), values.cols());
    for (int64_t i = 0; i < count_; ++i) {
      // The only rounding after noise was added; exact below 2^53 steps in double.
      using Real = typename Released::Scalar;
      released.data()[i] =
          std::ldexp(static_cast<Real>(steps[static_cast<size_t>(i)]), grid_.exponent);
    }
    return released;
  }

  const NoiseGrid grid_;
  const double noise_stddev_;
  const int64_t count_;
  const DrawFn draw_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_GRID_MECHANISM_H_

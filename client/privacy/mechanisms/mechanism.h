// Noise with a guarantee: what every mechanism can do.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// What a mechanism is made for. Both numbers are public.
struct ReleaseShape {
  int64_t values = 0;        // entries of the matrix, 1 to 2^28
  double largest_value = 0;  // a bound on their magnitude that depends on nothing private
};

// Immutable and thread-safe; sees private values in Release only. Made by MakeMechanism
// (make_mechanism.h).
class Mechanism {
 public:
  explicit Mechanism(Guarantee guarantee) : guarantee_(std::move(guarantee)) {}
  virtual ~Mechanism() = default;
  Mechanism(const Mechanism&) = delete;
  Mechanism& operator=(const Mechanism&) = delete;

  // The values with noise, rounded to float once. A value beyond what the mechanism was made for
  // (or NaN) is clipped, never refused: a refusal would be an answer that depends on the data, and
  // clipping brings no two inputs further apart. INVALID_ARGUMENT: another size than made for.
  // Otherwise the error of `bits`.
  virtual absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const = 0;

  // The same rounded to double instead, under the same guarantee: it holds for the grid points
  // themselves. What a float would hide, whether they are on the grid, shows here.
  virtual absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const = 0;

  // Of every entry: what is really added, the rounding's share included. Of the untruncated law
  // where there is a box.
  virtual double noise_stddev() const = 0;

  // Half the width of an interval around an entry, clipped as Release does, that holds its released
  // value with at least this probability, whatever the value. confidence: in (0, 1), else NaN.
  virtual double NoiseBound(double confidence) const = 0;

  const Guarantee& guarantee() const { return guarantee_; }

 private:
  const Guarantee guarantee_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_

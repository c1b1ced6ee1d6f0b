// The interface of a noise mechanism with a privacy guarantee.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/matrix.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Public shape of the matrices that a mechanism releases.
struct ReleaseShape {
  int64_t values = 0;        // entries of the matrix, 1 to 2^28
  double largest_value = 0;  // a bound on their magnitude that depends on nothing private
};

// Immutable and thread-safe; sees private values in Release only. Created by MakeMechanism
// (make_mechanism.h).
class Mechanism {
 public:
  explicit Mechanism(Guarantee guarantee) : guarantee_(std::move(guarantee)) {}
  virtual ~Mechanism() = default;
  Mechanism(const Mechanism&) = delete;
  Mechanism& operator=(const Mechanism&) = delete;

  // The values plus noise, rounded to float once.
  // - A value out of bounds, or NaN, is clipped, never refused: a refusal would be an output that
  //   depends on the data, and clipping brings no two inputs further apart.
  // - INVALID_ARGUMENT: another number of values than the shape's. Otherwise errors of `bits`.
  virtual absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const = 0;

  // One Release rounded to double instead, under the same guarantee, which holds for the grid
  // points themselves. The audit needs it: a float hides whether the noise is on the grid.
  virtual absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const = 0;

  // Standard deviation of the noise of every entry, the rounding's share included; of the
  // untruncated law if there is a box.
  virtual double noise_stddev() const = 0;

  const Guarantee& guarantee() const { return guarantee_; }

 private:
  const Guarantee guarantee_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MECHANISM_H_

// Gaussian noise with a guarantee, exact on a power-of-two grid.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_GAUSSIAN_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_GAUSSIAN_MECHANISM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/privacy/bit_source.h"
#include "common/base/matrix.h"

namespace privatemail {

enum class Mechanism {
  kGaussian,           // analytic calibration of a proven sensitivity: the default everywhere
  kPublishedGaussian,  // the second paper's printed bound and the classical formula: not a proven
                       // guarantee
};

// "gaussian", "published-gaussian"; INVALID_ARGUMENT listing both for another name.
absl::StatusOr<Mechanism> MechanismFromName(absl::string_view name);
absl::string_view NameOf(Mechanism mechanism);

// Standard deviation for each unit of L2 sensitivity, see calibration.h. Errors as there.
absl::StatusOr<double> GaussianStddevPerUnit(Mechanism mechanism, double epsilon, double delta);

// Adds noise to matrices of a fixed size. Immutable and thread-safe; sees private values in Release
// only.
//
// Values and noise live on the grid 2^e Z with 2^30 or more grid steps to a standard deviation. A
// value is rounded to the grid, which moves each of the `values` coordinates by at most half a
// step, so the noise is calibrated for the sensitivity D + step sqrt(values). Noise is the discrete
// Gaussian, drawn exactly; the sum is rounded to float once, at the end.
//
// Why the continuous calibration holds for the discrete law: let X ~ N(v, r^2 I) in grid steps, v
// integer, and draw K from the discrete Gaussian around X with deviation 4. That is post-processing
// of X, so K keeps X's guarantee. By Poisson summation the normaliser of every coordinate of K's
// law is constant up to a factor 1 +- 2 exp(-32 pi^2) (3e-137), so K's law equals the discrete
// Gaussian of variance r^2 + 16 around v up to a factor 1 +- 10^-127 for up to 2^28 coordinates. So
// the discrete Gaussian of deviation sqrt(r^2 + 16) has the guarantee of N(0, r^2) with epsilon and
// delta changed in the 127th digit, which the calibration's surplus of one part in 10^9 covers.
class GaussianMechanism {
 public:
  // stddev_per_unit from GaussianStddevPerUnit; l2_sensitivity D of the matrix in Frobenius norm;
  // values: entries of the matrix; largest_value: a bound on their magnitude that depends on
  // nothing private. INVALID_ARGUMENT: not finite and positive, or values outside [1, 2^28].
  // FAILED_PRECONDITION: no grid of 64-bit integers is fine enough for so many or so large values.
  static absl::StatusOr<GaussianMechanism> Create(double stddev_per_unit, double l2_sensitivity,
                                                  int64_t values, double largest_value);

  // What is really added: at least stddev_per_unit * l2_sensitivity, more by the rounding's share.
  double noise_stddev() const;

  // values + noise, rounded to float. A value beyond largest_value (or NaN) is clipped, never
  // refused: a refusal would be an answer that depends on the data, and clipping brings no two
  // inputs further apart. How many bits are drawn does not depend on the values. INVALID_ARGUMENT:
  // another size than created for. Otherwise the error of `bits`.
  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const;

 private:
  GaussianMechanism(int grid_exponent, uint64_t stddev_in_steps, int64_t values,
                    double largest_value)
      : grid_exponent_(grid_exponent),
        stddev_in_steps_(stddev_in_steps),
        values_(values),
        largest_value_(largest_value) {}

  int grid_exponent_;  // a grid step is 2^grid_exponent_
  uint64_t stddev_in_steps_;
  int64_t values_;
  double largest_value_;
};

// n x k independent draws of standard deviation `stddev`, for the start of an iteration: no
// guarantee rests on it, yet the exact sampler serves it too, so that the project has one source of
// normal values. Errors: that of `bits`.
absl::StatusOr<Matrix> NormalStart(int64_t n, int64_t k, double stddev, BitSource& bits);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_GAUSSIAN_MECHANISM_H_

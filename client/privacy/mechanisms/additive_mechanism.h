// Gaussian and Laplace mechanisms, exact on a power-of-two grid.
//
// Grid. Values and noise are on g Z, g a power of two and at most 2^-30 of the noise's width
// wherever 64 bits allow. Rounding a value to the grid moves each of the m coordinates by at most
// g/2: neighbours D apart are then at most D + g sqrt(m) apart in L2 and D + g m in L1, for which
// the noise is calibrated. Noise is drawn exactly; the sum is rounded once, at the end, to float or
// to double. The number of bits drawn depends on the noise, not on the values (README.md,
// sampling).
//
// Laplace: Pr[x] proportional to exp(-|x| / t) over the integers. Values D' steps apart in L1
// change the law of the sum by a factor of at most exp(D' / t): pure and exact.
//
// Gaussian: the continuous calibration holds for the discrete law. Proof. Let X ~ N(v, r^2 I) in
// grid steps, v integer, and draw K from the discrete Gaussian around X with deviation 4. That is
// post-processing of X, so K keeps X's guarantee. By Poisson summation the normaliser of every
// coordinate of K's law is constant up to a factor 1 +- 2 exp(-32 pi^2) (1.4e-137), so K's law
// equals the discrete Gaussian of variance r^2 + 16 around v up to a factor 1 +- 10^-127 for up to
// 2^28 coordinates. So the discrete Gaussian of deviation sqrt(r^2 + 16) has the guarantee of
// N(0, r^2) with epsilon and delta changed in the 127th digit, which the calibration's surplus of
// one part in 10^9 covers.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_ADDITIVE_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_ADDITIVE_MECHANISM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/matrix.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client {

// law: Gaussian or Laplace. width_per_unit: the Gaussian's standard deviation per unit of L2
// sensitivity, or the Laplace's scale, 1 / epsilon, per unit of L1 sensitivity; sensitivity: of the
// whole matrix, in that norm.
// - INVALID_ARGUMENT naming the field: not finite and positive.
// - FAILED_PRECONDITION: no grid of 64-bit integers is fine enough for the number or magnitude of
//   the values, or these with the noise exceed a float.
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeAdditiveMechanism(MechanismTraits::Law law,
                                                                       double width_per_unit,
                                                                       double sensitivity,
                                                                       const ReleaseShape& shape,
                                                                       Guarantee guarantee);

// n x k independent normal draws for the start of an iteration. No guarantee depends on them; they
// come from the exact sampler so that the project has one source of normal values. Errors of
// `bits`.
absl::StatusOr<Matrix> NormalStart(int64_t n, int64_t k, double stddev, BitSource& bits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_ADDITIVE_MECHANISM_H_

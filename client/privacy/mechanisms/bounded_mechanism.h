// The bounded Gaussian mechanism, exact on a power-of-two grid.
//
// A value is clipped to the largest box of grid points inside [lower, upper] and rounded to the
// grid; the release is the discrete Gaussian around it, conditioned on that box and drawn exactly.
// bounded_gaussian_calibration.h proves the guarantee. A draw takes more proposals the nearer the
// value is to an end of its side, so the time of Release depends on the values.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_BOUNDED_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_BOUNDED_MECHANISM_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/mechanism.h"

namespace privatemail::client {

// One side per value, in row-major order.
struct Box {
  std::vector<double> lower;
  std::vector<double> upper;
};

// Epsilon-DP for values whose L2 distance after clipping is at most l2_sensitivity. published: with
// the standard deviation that theorems 6 and 13 print, which is not proven on a grid.
// INVALID_ARGUMENT as BoundedGaussianStddev. FAILED_PRECONDITION: no grid of 64-bit integers fits
// the noise and the box.
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeBoundedGaussianMechanism(
    const Box& box, double l2_sensitivity, double epsilon, bool published, Guarantee guarantee);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_BOUNDED_MECHANISM_H_

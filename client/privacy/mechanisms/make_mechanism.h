// From parameters to a mechanism, the same way for every kind.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/bounded_mechanism.h"
#include "privatemail/guarantee.h"
#include "client/privacy/mechanisms/inference_privacy_calibration.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client {

// What is promised and what it rests on. What a kind does not ask for stays as it is here: a number
// that is set and would be ignored is refused.
struct MechanismParameters {
  static constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

  MechanismKind kind = MechanismKind::kGaussian;
  double epsilon = kUnset;
  double delta = kUnset;        // the Gaussian laws only; the others are pure, and 0 says so
  double sensitivity = kUnset;  // of a value: L1 for the Laplace law, else L2
  Box box = {};                 // the bounded law: a side for every value, or one side for all
  HiddenBall ball = {.radius = kUnset};  // Inference Privacy
  double lipschitz = kUnset;  // of the output: from the ball's metric to L1 for Laplace, else L2
};

// How much noise every value gets, before any grid. Pure arithmetic.
struct Calibration {
  double stddev = 0;    // of the untruncated law where there is a box
  Guarantee guarantee;  // of a value: its neighbours name the sensitivity, and the box
};

// `values`: how many values are released; the dimension of the input for noise on it.
// INVALID_ARGUMENT naming the parameter: not finite or out of range, missing, or set although the
// kind has no use for it.
absl::StatusOr<Calibration> Calibrate(const MechanismParameters& parameters, int64_t values);

// The mechanism for matrices of the shape, on a grid: a little more noise than Calibrate says.
// Errors as above; FAILED_PRECONDITION: no grid of 64-bit integers fits.
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeMechanism(
    const MechanismParameters& parameters, const ReleaseShape& shape);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_

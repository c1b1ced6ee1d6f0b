// Factory of noise mechanisms from their parameters.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/bounded_mechanism.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "privatemail/guarantee.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client {

inline constexpr double kDefaultNorm = 2;

// Privacy parameters. A field that the kind does not use must stay unset: it would be ignored, so
// it is refused.
struct MechanismParameters {
  MechanismKind kind = MechanismKind::kGaussian;
  double epsilon = 0;                      // has no default: 0 is refused
  std::optional<double> delta = {};        // Gaussian laws; the others are pure and accept 0
  std::optional<double> sensitivity = {};  // of a value: L1 for the Laplace law, else L2
  Box box = {};                            // bounded law: one side per value, or one side for all
  // Inference Privacy {(epsilon, delta), radius}: hides an input among all inputs at most `radius`
  // from it in the l_norm metric (Tian and Tandon, "Inference Privacy: Properties and Mechanisms",
  // definitions 1 and 2). On a bounded domain its diameter is local privacy.
  // - Noise on the output needs a Lipschitz constant of the released function, from the metric to
  //   L1 for Laplace, else L2: radius * constant is a sensitivity, whose mechanism gives the
  //   guarantee for every pair within the radius. lipschitz.h has that of the joint release.
  // - Noise on the input needs that of the identity only; all that follows is post-processing.
  std::optional<double> radius = {};
  double norm = kDefaultNorm;  // p of l_p: 1 <= p, infinity included
  std::optional<double> lipschitz = {};
};

// Noise of every value before rounding to a grid.
struct Calibration {
  double stddev = 0;  // of the untruncated law if there is a box
  // The neighbours of a value name the sensitivity, and the box. A ball has the radius and the
  // metric "l<p>", p exact. Proven Gaussian noise has gaussian_mu.
  Guarantee guarantee;
};

// `values`: number of released values; for noise on the input its dimension. No sampling.
// INVALID_ARGUMENT naming the parameter: not finite, out of range, missing, or set although the
// kind does not use it.
absl::StatusOr<Calibration> Calibrate(const MechanismParameters& parameters, int64_t values);

// The number of values with noise, for Calibrate: it matters where the radius's norm differs from
// the noise's, and in a box. dimension: of the input, or of a box of equal sides.
// INVALID_ARGUMENT: it is out of range, missing, or not accepted by the kind.
absl::StatusOr<int64_t> ValueCount(const MechanismParameters& parameters,
                                   const std::optional<int64_t>& dimension);

// Rounded up. INVALID_ARGUMENT: it is no normal number.
absl::StatusOr<double> VarianceOf(double stddev);

// The mechanism for matrices of the shape, on a grid: slightly more noise than Calibrate returns.
// Errors as above; FAILED_PRECONDITION: no grid of 64-bit integers fits.
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeMechanism(
    const MechanismParameters& parameters, const ReleaseShape& shape);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_MAKE_MECHANISM_H_

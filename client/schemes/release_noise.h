// Which noise a joint release gets, and what its guarantee rests on. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NOISE_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NOISE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/guarantee.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "privatemail/joint_scheme.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// The noise of one private iteration, made out of public values alone.
struct IterationNoise {
  // How far the values under the noise can move between neighbours: L1 or L2, as the law needs.
  double sensitivity = 0;
  std::unique_ptr<const Mechanism> mechanism;
  double delta =
      0;  // what all iterations together cost of it: not what their theorem has no use for
  absl::string_view composition;  // the theorem by which iterations share the cost; empty for one
};

// anchors: unit rows, those that follow the slots. inputs: the iteration that is about to run, one
// of cost.private_iterations; cost: of all of them together. Noise is on the iterate, or on the
// target's unit row where the mechanism protects the input.
//
// How iterations share the cost. Gaussian laws: noise sqrt(iterations) times as wide, since mu
// composes as a root of squares (composition.h). Pure laws: EpsilonOfEachRelease of the cost's
// epsilon and delta, or epsilon / iterations where that is more or there is no delta; then no delta
// is spent. Both hold although every iteration starts from the one before, which is public once its
// noise is on.
//
// INVALID_ARGUMENT: a parameter that is missing, out of range (a radius above 2, the diameter of
// the sphere of features) or of no use to the mechanism.
// FAILED_PRECONDITION: no bound can be given for these parameters.
absl::StatusOr<IterationNoise> NoiseOf(const PublicParameters& parameters, const Matrix& anchors,
                                       const IterationInputs& inputs, const PrivacyCost& cost);

// What all iterations together promise, given the noise of the first. Its source names, in this
// order, the composition theorem, the proof of the sensitivity or Lipschitz constant, and that of
// the noise.
Guarantee GuaranteeOf(const PrivacyCost& cost, const IterationNoise& noise);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NOISE_H_

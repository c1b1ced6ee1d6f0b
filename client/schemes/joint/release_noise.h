// Noise and guarantee of the joint scheme's releases, from public values. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_RELEASE_NOISE_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_RELEASE_NOISE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "client/schemes/joint/joint_scheme.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// The noise of one private iteration of a joint release.
struct IterationNoise {
  double sensitivity = 0;  // of the values under the noise: L1 or L2, as the law needs
  std::unique_ptr<const Mechanism> mechanism;
  double delta = 0;               // of all iterations together; 0 where their theorem needs none
  absl::string_view composition;  // theorem by which iterations share the cost; empty for one
};

// anchors: unit rows, which follow the slots.
// feature_dim: columns of target and anchors.
// inputs: of this iteration, one of cost.private_iterations; each starts from the noisy, so public,
//   result of the iteration before.
// Noise: on the iterate, or on the target's unit row where the mechanism protects the input.
// Share of `cost` per iteration:
//   Gaussian laws  noise sqrt(iterations) times as wide: mu composes as a root of squares
//   pure laws      EpsilonPerRelease, or epsilon / iterations without delta where that is more
// INVALID_ARGUMENT: a parameter is missing, out of range or not used by the mechanism.
// FAILED_PRECONDITION: no bound is proven for these parameters.
absl::StatusOr<IterationNoise> MakeIterationNoise(const EmbeddingSettings& settings,
                                                  int64_t feature_dim, const Matrix& anchors,
                                                  const IterationInputs& inputs,
                                                  const PrivacyCost& cost);

// The errors of MakeIterationNoise that concern the cost alone.
absl::Status CheckCost(const PrivacyCost& cost);

// The guarantee of all iterations together, given the noise of the first. `source` names in this
// order: the composition theorem, the proof of sensitivity or Lipschitz constant, the proof of the
// noise.
Guarantee ComposeGuarantee(const PrivacyCost& cost, const IterationNoise& noise);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_RELEASE_NOISE_H_

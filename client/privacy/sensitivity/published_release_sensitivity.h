// The papers' printed sensitivities, with the numbers that a release has for them.
//
// NOT proven guarantees: published_gaussian_sensitivity.h and published_laplace_sensitivity.h say
// why.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_RELEASE_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_RELEASE_SENSITIVITY_H_

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

// Of `inputs`, which follow `settings`: n is the number of rows, slots and anchors, and labels
// count as 0 .. slots - 1. FAILED_PRECONDITION: a kernel other than two_sigma_squared, for which
// alone the papers print their bounds, or the printed formula gives no finite positive number.

// PublishedGaussianSensitivity as printed, of this start. V2.
absl::StatusOr<double> SecondPapersSensitivity(const EmbeddingSettings& settings,
                                               const IterationInputs& inputs);

// PublishedLaplaceSensitivity at the largest beta that theorem 1 admits, of a start with the
// settings' deviation; constants by label graph, one-hot or integer. An L2 sensitivity, whatever
// V1 does with it.
absl::StatusOr<double> FirstPapersSensitivity(const EmbeddingSettings& settings,
                                              const IterationInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_RELEASE_SENSITIVITY_H_

// What the bounds on one iteration share. For this room's own sources.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ITERATION_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ITERATION_BOUNDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/sensitivity.h"

namespace privatemail::iteration_bounds {

// The checks that sensitivity.h promises for IterationInputs.
absl::Status CheckInputs(const IterationInputs& in);

// m = exp(-4/c), or why the kernel cannot be bounded.
absl::StatusOr<double> SmallestAffinity(const IterationInputs& in);

// g_i = |alpha (L_Y Q)_i|
Vector LabelPull(const IterationInputs& in);

// The bound and one part in 10^12, which covers the rounding of its evaluation; FAILED_PRECONDITION
// when it is not finite.
absl::StatusOr<double> FiniteBound(double bound);

}  // namespace privatemail::iteration_bounds

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ITERATION_BOUNDS_H_

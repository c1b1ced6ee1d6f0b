// Attacks on the noise steps of the evaluation's baselines.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/audit/audit.h"
#include "client/baselines/baseline.h"

namespace privatemail::client::audit {

// A noise step of a baseline, and the pair on which it is attacked.
struct BaselineStep {
  const char* name;  // the baseline's in all_baselines.h
  bool takes_delta;
  // By the function that the baseline itself calls, with secure bits. INVALID_ARGUMENT: the cost is
  // out of the calibration's range.
  absl::StatusOr<Subject> (*attack)(const baselines::Cost& cost);
};

// analyse-gauss: a gallery of one row along either of two axes, which moves the second moments by
// all of the sensitivity. random-projection: a target along the singular vector, or its opposite.
// dp-dsne: a gradient that is clipped, or its opposite, in each of four iterations, of which the
// sum tells most. Each: the nearer side.
// published-ppca and candidate-ppca: four rows along one axis, or one of them along the other; the
// subspace that the second makes likelier. Normalisers of the two laws differ then, too, and the
// loss comes near all of epsilon.
absl::Span<const BaselineStep> BaselineSteps();

// Null for another name.
const BaselineStep* BaselineStepFromName(absl::string_view name);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_

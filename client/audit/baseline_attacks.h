// Attacks on the noise steps of the baseline mechanisms.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/audit/audit.h"
#include "client/baselines/baseline.h"

namespace privatemail::client::audit {

// A noise step of a baseline and its attack.
struct BaselineStep {
  const char* name;  // of the baseline in all_baselines.h
  bool takes_delta;
  // On the function that the baseline itself calls, with secure bits. INVALID_ARGUMENT: the cost is
  // out of the calibration's range.
  absl::StatusOr<Subject> (*attack)(const baselines::Cost& cost);
};

//   baseline                       | neighbours                                       | event
//   analyse-gauss                  | a gallery of one row along either of two axes    | nearer side
//   random-projection              | a target along the singular vector, or opposite  | nearer side
//   dp-dsne                        | a clipped gradient or its opposite, 4 iterations | sum's side
//   published-ppca, candidate-ppca | four rows along one axis, or one of them along   | likelier
//                                  | the other: the normalisers differ too, and the   | subspace
//                                  | loss is nearly epsilon                           |
absl::Span<const BaselineStep> BaselineSteps();

// Null if there is none of that name.
const BaselineStep* BaselineStepFromName(absl::string_view name);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_BASELINE_ATTACKS_H_

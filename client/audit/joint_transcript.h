// A joint release as whoever attacks it knows it: every private iteration, and between what.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_TRANSCRIPT_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_TRANSCRIPT_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/audit/joint_pair.h"
#include "privatemail/bit_source.h"
#include "privatemail/mechanism_kind.h"
#include "common/base/matrix.h"

namespace privatemail::client::audit {

// One private iteration. Start, dummies and parameters are public, so what either target would
// release without noise is known.
struct TranscriptStep {
  Matrix one;  // the noise-free iterate of the one target
  Matrix other;
  FloatMatrix released;
  double noise_stddev = 0;
  double sensitivity = 0;  // that the noise was made for
};

// The logarithm of how much likelier the release is for `one` than for `other`, up to a term that
// does not depend on it: the best score there is.
double LogLikelihoodRatio(const TranscriptStep& step, MechanismTraits::Law law);
double LogLikelihoodRatio(const std::vector<TranscriptStep>& transcript, MechanismTraits::Law law);

// ReleaseIterations (joint_steps.h), or a fault in its place.
using ReleaseFn = std::function<absl::StatusOr<std::vector<FloatMatrix>>(
    const JointSetting& setting, const TargetFreePart& part, const PrivacyCost& cost, int64_t slot,
    const RowVector& target, BitSource& bits)>;

// A fresh release of one of the pair, drawn to its end. Errors: those of the release.
absl::StatusOr<std::vector<TranscriptStep>> DrawTranscript(const JointPair& pair,
                                                           const PrivacyCost& cost,
                                                           Neighbour neighbour,
                                                           const ReleaseFn& release,
                                                           BitSource& bits);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_TRANSCRIPT_H_

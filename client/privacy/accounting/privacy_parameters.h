// The range of epsilon and delta that the calibrations are proven over. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_PRIVACY_PARAMETERS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_PRIVACY_PARAMETERS_H_

#include "absl/status/status.h"

namespace privatemail::client {

// INVALID_ARGUMENT naming the field unless epsilon is finite, positive and in [1e-9, 1e6].
absl::Status CheckEpsilon(double epsilon);

// INVALID_ARGUMENT naming the field unless delta lies in (0, 1) and is at least 1e-300.
absl::Status CheckDelta(double delta);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_PRIVACY_PARAMETERS_H_

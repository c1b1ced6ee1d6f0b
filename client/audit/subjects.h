// Subjects of an audit, by the mechanism's name.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_SUBJECTS_H_
#define PRIVATEMAIL_CLIENT_AUDIT_SUBJECTS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"

namespace privatemail::client::audit {

inline constexpr double kDefaultDelta = 1e-5;  // of mechanisms that take one

// Created one by one: some draw pilot releases.
using CreateSubject = std::function<absl::StatusOr<Subject>()>;

// One mechanism: a name of mechanism_kind.h, "cells" or "encrypted". Empty: every mechanism alone
// and in the joint release; the choice of cells alone and in a request; requests by joint and
// encrypted queries as the daemon receives them.
// INVALID_ARGUMENT: delta is NaN; the subjects' own: an unknown name, or a delta that it does not
// take.
absl::StatusOr<std::vector<CreateSubject>> Subjects(const std::string& mechanism, double epsilon,
                                                    const std::optional<double>& delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_SUBJECTS_H_

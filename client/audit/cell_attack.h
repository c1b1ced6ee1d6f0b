// Attacks on the choice of cells (PRIVACY.md section 5).
#ifndef PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/privacy/bit_source.h"
#include "client/privacy/cell_mechanism.h"

namespace privatemail::audit {

// CellMechanism::Choose, or a fault in its place.
using ChooseFn = std::function<absl::StatusOr<std::vector<int64_t>>(
    const CellMechanism& mechanism, const std::vector<int64_t>& best, BitSource& bits)>;

// The production choice, with secure bits, for two queries whose best cells have none in common:
// one cell of two, and several of several, each the event that is e^epsilon times as likely for the
// one query. INVALID_ARGUMENT: epsilon.
absl::StatusOr<Subject> AttackCells(double epsilon);
absl::StatusOr<Subject> AttackCells(double epsilon, const ChooseFn& choose);

}  // namespace privatemail::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

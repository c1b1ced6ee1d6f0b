// Attacks on the choice of cells and on the request that it makes (PRIVACY.md section 5).
#ifndef PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "privatemail/bit_source.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "privatemail/cell_scheme.h"

namespace privatemail::client::audit {

// CellMechanism::Choose, or a fault in its place.
using ChooseFn = std::function<absl::StatusOr<std::vector<int64_t>>(
    const CellMechanism& mechanism, const std::vector<int64_t>& best, BitSource& bits)>;

// The production choice, with secure bits, for two queries whose best cells have none in common:
// one cell of two, and several of several, each the event that is e^epsilon times as likely for the
// one query. INVALID_ARGUMENT: epsilon.
absl::StatusOr<Subject> AttackCells(double epsilon);
absl::StatusOr<Subject> AttackCells(double epsilon, const ChooseFn& choose);

// A collection with a cell of anchors for each class, and a target of a class, nearest to its cell.
absl::StatusOr<CellScheme> SchemeWithACellAClass(int32_t classes);
Eigen::RowVectorXf TargetOfClass(int32_t label, int32_t classes);

// The cells of a request, or a fault in their place.
using AskFn = std::function<absl::StatusOr<std::vector<int64_t>>(
    const CellScheme& scheme, const Eigen::RowVectorXf& features, const CellCost& cost,
    BitSource& bits)>;

// As CellScheme::Release does it, from the features on, but for the ledger: a durable charge takes
// tens of milliseconds.
absl::StatusOr<std::vector<int64_t>> AskForCells(const CellScheme& scheme,
                                                 const Eigen::RowVectorXf& features,
                                                 const CellCost& cost, BitSource& bits);

// What class inference can tell from all that leaves in a request for one cell: targets of two
// classes out of 2 and out of 8, each with a cell of its own, and the event that the cell of the
// one is asked for, e^epsilon times as likely for its target. INVALID_ARGUMENT: epsilon.
absl::StatusOr<Subject> AttackCellRequest(double epsilon, const AskFn& ask = &AskForCells);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

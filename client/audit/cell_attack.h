// Attacks on the cells scheme: the choice of cells and the request (PRIVACY.md section 5).
#ifndef PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/cells/cell_scheme.h"

namespace privatemail::client::audit {

// CellMechanism::Choose or a planted fault.
using ChooseFn = std::function<absl::StatusOr<std::vector<int64_t>>(
    const CellMechanism& mechanism, const std::vector<int64_t>& best, BitSource& bits)>;

// The production choice for two queries with disjoint best cells, by two attacks: one cell of two,
// several of several. Each event is e^epsilon times as likely for one query as for the other.
// INVALID_ARGUMENT: epsilon.
absl::StatusOr<Subject> AttackCells(double epsilon,
                                    const ChooseFn& choose = &CellMechanism::Choose);

// The cells of a request (ChooseRequestCells) or a planted fault.
using RequestCellsFn = std::function<absl::StatusOr<std::vector<int64_t>>(
    const CellScheme& scheme, const Eigen::RowVectorXf& features, const CellCost& cost,
    BitSource& bits)>;

// As CellScheme::Release without its ledger: a durable charge takes tens of milliseconds.
absl::StatusOr<std::vector<int64_t>> ChooseRequestCells(const CellScheme& scheme,
                                                        const Eigen::RowVectorXf& features,
                                                        const CellCost& cost, BitSource& bits);

// Class inference from a request for one cell: targets of two classes out of 2 and out of 8, one
// cell per class. Event: a request for one target's cell, e^epsilon times as likely for that
// target. INVALID_ARGUMENT: epsilon.
absl::StatusOr<Subject> AttackCellRequest(
    double epsilon, const RequestCellsFn& request_cells = &ChooseRequestCells);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_CELL_ATTACK_H_

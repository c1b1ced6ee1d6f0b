// Internal steps of a cells release, for attacks. Not installed: they choose cells without a
// charge.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_STEPS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/schemes/cells/cell_scheme.h"

namespace privatemail::client {

// The input of a choice: the released cells are mechanism.Choose(best, bits).
struct CellDraw {
  CellMechanism mechanism;    // public
  std::vector<int64_t> best;  // the target's `focus` nearest cells. Private
};

// Errors: those of CellScheme::Release for features and cost.
absl::StatusOr<CellDraw> PrepareCellDraw(const CellScheme& scheme,
                                         const Eigen::RowVectorXf& features, const CellCost& cost);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_STEPS_H_

#include "client/schemes/cells/cell_steps.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::StatusOr<CellDraw> PrepareDraw(const CellScheme& scheme, const Eigen::RowVectorXf& features,
                                     const CellCost& cost) {
  const std::vector<CellPartition>& partitions = scheme.parameters().cell_partitions;
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("partition", cost.partition, 0, std::ssize(partitions) - 1));
  const int64_t cells = partitions[static_cast<size_t>(cost.partition)].cells;
  PM_ASSIGN_OR_RETURN(
      CellMechanism mechanism,
      CellMechanism::Create(
          {.cells = cells, .ask = cost.ask, .focus = cost.focus, .epsilon = cost.epsilon}));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> best,
                      scheme.NearestCells(features, cost.partition, cost.focus));
  return CellDraw{.mechanism = std::move(mechanism), .best = std::move(best)};
}

}  // namespace privatemail::client

// Cells that are learnt from what queries want.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_LEARN_ROUTER_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_LEARN_ROUTER_H_

#include <cstdint>
#include <vector>

#include "client/evaluation/cell_router.h"
#include "common/base/matrix.h"
#include "common/cells/item_cells.h"

namespace privatemail::client {

struct LearntCells {
  CellRouter router;
  std::vector<std::vector<int64_t>> lists;  // as CellLists
};

// As k-means, but that a query belongs to the cell whose list is expected to have most of its
// neighbours: by turns each cell's list is made of what its queries want (CellLists), and each
// query goes where the prototypes around it have found most, kRounds times. It begins with the
// k-means' cells. Deterministic.
//
// queries: features of known ones (m x d); nearest: for each the rows of the gallery nearest to it;
// centroids: cells x d, to begin with; lie: where the n items do among them; prototypes: public
// points; length in [0, n]; epsilon > 0, public.
LearntCells LearnRouter(const Matrix& queries, const std::vector<std::vector<int64_t>>& nearest,
                        const ItemCells& lie, const Matrix& centroids,
                        const FloatMatrix& prototypes, double epsilon, int64_t length);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_LEARN_ROUTER_H_

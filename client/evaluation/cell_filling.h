// Which items answer for cells, and which come back when several are asked for.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_CELL_FILLING_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_CELL_FILLING_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/cells/demand.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {

// The rows of items that answer for each cell, those that come first first.
using CellContents = std::vector<std::vector<int64_t>>;

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors);

// Each item answers for the `overlap` cells whose centroids (K x d) are nearest to it (n x d);
// those nearest to a centroid come first. overlap in [1, K].
CellContents FileUnderNearest(const Matrix& items, const Matrix& centroids, int64_t overlap);

// Each query (m x d) is one from each of the `focus` cells nearest to it, for the demand of which
// the rows `nearest` to it count.
KnownQueries WantedBy(const Matrix& queries, const std::vector<std::vector<int64_t>>& nearest,
                      const Matrix& centroids, int64_t focus);

// How many cells can be asked for, if each item answers for `overlap` of them, before more than a
// share of the items comes back, were all cells of a size; 0: not even one.
int64_t CellsWithin(double share, int64_t cells, int64_t overlap);

// What the cells asked for have, the first of each before the second of any, each row once, and not
// more than `length` of them.
std::vector<int64_t> MergedContents(const CellContents& contents, const std::vector<int64_t>& asked,
                                    int64_t length);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_FILLING_H_

// The items that answer for each cell.
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_LISTS_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_LISTS_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "server/cells/demand.h"

namespace privatemail {

// For each cell `length` rows of the gallery, most wanted first. Searchers ask for their own cell
// with e^epsilon times the probability of each other one, so that whoever asks for a cell is of it
// with a weight of e^epsilon against 1 for one of each other: a row is wanted as much as its demand
// weighted so. At small epsilon these are the items that everybody wants, at large epsilon those of
// the cell. Rows that nobody wants follow by their distance to the centroid.
//
// gallery: n x d; centroids: cells x d; length in [0, n]; epsilon > 0, public.
std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const Matrix& gallery,
                                            const Matrix& centroids, double epsilon,
                                            int64_t length);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_LISTS_H_

// The items that answer for each cell.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_

#include <cstdint>
#include <vector>

#include "common/cells/demand.h"
#include "common/cells/item_cells.h"

namespace privatemail {

// Servers make lists for a few epsilons, of which neighbours differ little in what they are worth:
// the nearest of those to a finite one.
double QuantiseEpsilon(double epsilon);

// `length` rows of the gallery for a cell, most wanted first. Searchers ask for their own cell
// with e^epsilon times the probability of each other one, so that whoever asks for a cell is of it
// with a weight of e^epsilon against 1 for one of each other: a row is wanted as much as its demand
// weighted so. At small epsilon these are the items that everybody wants, at large epsilon those of
// the cell. Of rows that are wanted equally, or by nobody, those that lie in the cell come first,
// by their distance to its centroid.
//
// lie: where the items do; length in [0, n]; epsilon > 0, public. O(n + length log length).
std::vector<int64_t> CellList(const Demand& demand, const ItemCells& lie, int64_t cell,
                              double epsilon, int64_t length);

// The same for each cell.
std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const ItemCells& lie,
                                            double epsilon, int64_t length);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_LISTS_H_

// The parameters of a release by the scheme cells.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_CELL_COST_H_
#define PRIVATEMAIL_CLIENT_PLANNING_CELL_COST_H_

#include <cstdint>

namespace privatemail::client {

// Public; choose them independently of the target.
struct CellCost {
  int64_t partition = 0;  // index of one of the collection's partitions
  int64_t ask = 1;        // w: cells requested
  int64_t focus = 1;      // t: cells nearest to the target that the choice prefers
  double epsilon = 0;     // has no default: 0 is refused
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_CELL_COST_H_

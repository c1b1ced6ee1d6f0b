// Exact k nearest neighbours by full scan.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

struct Neighbor {
  int64_t row = 0;  // of the searched points
  double squared_distance = 0;
};

// The min(k, n) rows of `points` (n x d) nearest to each row of `queries` (m x d), nearest first,
// ties by the smaller row. Differences are squared in double, never expanded, so equal points have
// distance 0. O(m n d) time, O(k) memory a query.
std::vector<std::vector<Neighbor>> NearestRows(const Matrix& queries, const Matrix& points,
                                               int64_t k);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

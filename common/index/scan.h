// A scan of all points for several queries at once.
#ifndef PRIVATEMAIL_COMMON_INDEX_SCAN_H_
#define PRIVATEMAIL_COMMON_INDEX_SCAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "common/index/screened_points.h"

namespace privatemail {

// Finds what NearestRows finds, bit for bit, in O(m n k) time too, of which most is spent in single
// precision and in fast memory. Immutable, thread-safe.
class Scan {
 public:
  // points: n x k, finite; they must outlive this. O(n k) time, 4 k + 8 bytes a row.
  explicit Scan(const Matrix& points);

  // As NearestRows.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* skipped) const;

 private:
  const Matrix& points_;
  std::optional<ScreenedPoints> copies_;  // none where single precision cannot hold them
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_SCAN_H_

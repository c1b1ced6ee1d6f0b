// Which items of a gallery are near to some of them.
#ifndef PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_
#define PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

inline constexpr int64_t kLargeGallery = 50'000;
inline constexpr int64_t kManyQueries = 4096;

// For each of the queries, which are rows of `items` (n x d, finite) and ascend, the `count` other
// rows that are nearest to it, nearest first; fewer where there are not so many. In single
// precision. Of kLargeGallery items or more, and kManyQueries, it misses some: they are put into
// sqrt(n) lists at most, by a k-means as an inverted file is, and a query is compared with those of
// the 32 lists around its own. Equal items give equal rows. Starts no threads. When `stopped`
// becomes true meanwhile, it ends early with something, after seconds. O(q n d) time; for lists
// O(n sqrt(n) d + q sqrt(n) d), and 24 bytes a row beside a quarter of the items at most.
std::vector<std::vector<int64_t>> NearestOthers(const FloatMatrix& items,
                                                const std::vector<Eigen::Index>& queries,
                                                int64_t count, const std::atomic<bool>& stopped);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

// Nearest neighbours of some of a gallery's items among the others.
#ifndef PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_
#define PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

inline constexpr int64_t kLargeGallery = 50'000;
inline constexpr int64_t kManyQueries = 4096;

// The `count` rows of `items` (n x d, finite) nearest to each query, itself excluded, nearest
// first; fewer if there are fewer. queries: ascending rows of items.
// - Single precision; equal items give equal rows; starts no threads.
// - From kLargeGallery items and kManyQueries queries on it is approximate: items are grouped into
//   at most sqrt(n) lists by k-means, and a query is compared with the 32 lists around its own.
// - If `stopped` becomes true, returns unspecified rows within seconds.
//
//   q queries of n items in d coordinates
//   exact        O(q n d) time
//   approximate  O(n sqrt(n) d + q sqrt(n) d) time; 24 bytes a row beside at most a quarter of the
//                items
std::vector<std::vector<int64_t>> NearestOthers(const FloatMatrix& items,
                                                const std::vector<Eigen::Index>& queries,
                                                int64_t count, const std::atomic<bool>& stopped);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

// A search for the nearest other items of a sample of items, read in blocks.
#ifndef PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_
#define PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/numerics/row_source.h"

namespace privatemail {

inline constexpr int64_t kLargeGallery = 50'000;
inline constexpr int64_t kManyQueries = 4096;

// The `count` rows of `items` (n x d, finite) nearest to each query, itself excluded, nearest
// first; fewer if there are fewer. queries: ascending rows of items.
// - Single precision; equal items give equal rows, from memory and from a file; starts no threads.
// - From kLargeGallery items and kManyQueries queries on it is approximate: a k-means groups items
//   into lists, and a query is compared with the 32 lists around its own.
// - Of a list of more than 32 n / L items, which are likely equal, only so many are compared with.
// Errors of RowSource; CANCELLED, within seconds: `stopped` became true.
//
//   q queries, L = min(sqrt(32 q), q / 32) lists
//   exact        O(q n d) time
//   approximate  O((n L + q n / L) d) time
absl::StatusOr<std::vector<std::vector<int64_t>>> NearestOthers(
    const RowSource& items, const std::vector<Eigen::Index>& queries, int64_t count,
    const std::atomic<bool>& stopped);

// Approximate bytes that it takes beside a source in memory, result included.
int64_t MemoryOfNearestOthers(int64_t items, int64_t cols, int64_t queries, int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_NEAREST_OTHERS_H_

// K-means, and nearest neighbours in single precision by FAISS. Starts no threads.
#ifndef PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_
#define PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/cancellation.h"
#include "common/base/matrix.h"
#include "common/cells/cell_lists.h"

namespace privatemail {

struct KMeansEffort {
  int iterations = 20;
  int points_per_centroid = 256;  // maximum; more points are sampled
};
// For inverted lists that only preselect candidates for exact comparison.
inline constexpr KMeansEffort kRoughKMeans = {.iterations = 8, .points_per_centroid = 64};

// The centroids (count x d) of a k-means with a fixed seed: equal points give equal centroids.
// points: n x d, finite; count in [1, n]. If `cancelled` returns true, it returns early with
// unspecified values.
FloatMatrix KMeans(const FloatMatrix& points, int64_t count, const KMeansEffort& effort,
                   const CancelledFunction& cancelled = nullptr);

// The nearest centroid of each point. If `stopped` (null: never) becomes true, it returns early
// with unspecified values.
std::vector<int64_t> NearestCentroids(const FloatMatrix& points, const FloatMatrix& centroids,
                                      const std::atomic<bool>* stopped = nullptr);

// NearestCentroids with distances. items: n x d; centroids: cells x d.
ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped = nullptr);

// The min(count, n) points nearest to each query (m x d), nearest first. In single precision:
// nearly equal distances may be swapped. `stopped` as above.
std::vector<std::vector<int64_t>> NearestItems(const FloatMatrix& queries,
                                               const FloatMatrix& points, int64_t count,
                                               const std::atomic<bool>& stopped);

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

#endif  // PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_

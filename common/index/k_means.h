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

// The rows of n points on which KMeans trains, in its order: all, or a sample without repetition.
// KMeans of these rows alone gives the same centroids.
std::vector<Eigen::Index> KMeansSample(Eigen::Index points, int64_t count,
                                       const KMeansEffort& effort);

// The nearest centroid of each point. If `stopped` (null: never) becomes true, it returns early
// with unspecified values.
std::vector<int64_t> NearestCentroids(const FloatMatrix& points, const FloatMatrix& centroids,
                                      const std::atomic<bool>* stopped = nullptr);

// NearestCentroids with distances. items: n x d; centroids: cells x d.
ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped = nullptr);

struct NearPoint {
  float squared_distance;
  int64_t row;
};

// The min(count, n) points nearest to each query (m x d), nearest first. In single precision:
// nearly equal distances may be swapped. `stopped` as above.
std::vector<std::vector<NearPoint>> NearestItems(const FloatMatrix& queries,
                                                 const Eigen::Ref<const FloatMatrix>& points,
                                                 int64_t count, const std::atomic<bool>& stopped);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_

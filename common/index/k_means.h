// Centroids of a cloud of points.
#ifndef PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_
#define PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

struct KMeansEffort {
  int iterations = 20;
  int points_per_centroid = 256;  // at most: of more points so many are sampled
};

// `count` x d: the centroids of a k-means (FAISS's, with a fixed seed: equal points give equal
// centroids) of n x d points, finite; count in [1, n]. Starts no threads.
FloatMatrix KMeans(const FloatMatrix& points, int64_t count, const KMeansEffort& effort);

// For each point the row of the centroid that is nearest to it. Starts no threads. When `stopped`
// becomes true meanwhile (null: never), it ends early with something.
std::vector<int64_t> NearestCentroids(const FloatMatrix& points, const FloatMatrix& centroids,
                                      const std::atomic<bool>* stopped = nullptr);

// For each query (m x d) the rows of the min(count, n) points nearest to it, nearest first. In
// single precision: where two are nearly as near, either comes first. Starts no threads; `stopped`
// as above.
std::vector<std::vector<int64_t>> NearestItems(const FloatMatrix& queries,
                                               const FloatMatrix& points, int64_t count,
                                               const std::atomic<bool>& stopped);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_K_MEANS_H_

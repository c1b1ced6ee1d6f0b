// The inverted lists of an IVF index: points grouped by nearest centroid.
#ifndef PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_
#define PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/screened_points.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// n x k points in about 2 sqrt(n) lists, the clusters of a k-means (FAISS, on a sample, fixed seed:
// equal points give equal lists). Immutable and thread-safe. Searches use neither OpenMP nor BLAS;
// the constructor does, on the calling thread.
class InvertedLists {
 public:
  // points: ScreenedPoints::CanHold(points); they must outlive this. O(n sqrt(n) k) time. If
  // `stopped` becomes true, construction ends early and the object must not be searched.
  explicit InvertedLists(const Matrix& points, const std::atomic<bool>* stopped = nullptr);

  int64_t size() const { return lists_.groups(); }
  // The rows of the list whose centroid is nearest to the query (k values), ascending.
  const std::vector<int64_t>& RowsAround(const RowVector& query) const;

  // NearestRows among the rows of the `probed` lists whose centroids are nearest to the query.
  std::vector<Neighbor> Search(const RowVector& query, int64_t count,
                               const std::vector<bool>* skipped, int64_t probed) const;

 private:
  // The lists with the nearest centroids, nearest first.
  std::vector<int64_t> Nearest(const Eigen::VectorXf& scaled, int64_t count) const;

  ScreenedPoints lists_;       // one group a list
  Eigen::MatrixXf centroids_;  // lists x k, scaled as the points are
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_

// Points in lists, each the neighbourhood of a centroid.
#ifndef PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_
#define PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "common/index/screened_points.h"

namespace privatemail {

// n x k points, finite, in about 2 sqrt(n) lists: the cells of a k-means (FAISS's, of a sample,
// with a fixed seed: equal points give equal lists). Immutable and thread-safe; searches use
// neither OpenMP nor BLAS, the constructor does, on the calling thread.
class InvertedLists {
 public:
  // points: such as ScreenedPoints can hold; they must outlive this. O(n sqrt(n) k) time. When
  // `stopped` becomes true meanwhile, it ends early and is good for nothing.
  explicit InvertedLists(const Matrix& points, const std::atomic<bool>* stopped = nullptr);

  int64_t size() const { return lists_.groups(); }
  // The rows of the list whose centroid is nearest to the query (k values), ascending.
  const std::vector<int64_t>& RowsAround(const RowVector& query) const;

  // The rows nearest to the query among those of the `probed` lists whose centroids are nearest, as
  // NearestRows would find them there.
  std::vector<Neighbor> Search(const RowVector& query, int64_t count,
                               const std::vector<bool>* skipped, int64_t probed) const;

 private:
  // The lists whose centroids are nearest, nearest first.
  std::vector<int64_t> Nearest(const Eigen::VectorXf& scaled, int64_t count) const;

  ScreenedPoints lists_;       // a group each
  Eigen::MatrixXf centroids_;  // lists x k, scaled as the points are
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_INVERTED_LISTS_H_

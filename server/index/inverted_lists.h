// Points in lists, each the neighbourhood of a centroid.
#ifndef PRIVATEMAIL_SERVER_INDEX_INVERTED_LISTS_H_
#define PRIVATEMAIL_SERVER_INDEX_INVERTED_LISTS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// n x k points, finite, in about 2 sqrt(n) lists: the cells of a k-means (FAISS's, of a sample,
// with a fixed seed: equal points give equal lists). Keeps single-precision copies of the points,
// centred and scaled first, so that a cloud far from the origin loses nothing. Immutable and
// thread-safe; searches use neither OpenMP nor BLAS, the constructor does, on the calling thread.
class InvertedLists {
 public:
  // Whether the points can be copied at all: not all at one place, no sum of theirs overflows.
  static bool CanHold(const Matrix& points);

  // points must be such, and outlive this. O(n sqrt(n) k) time. When `stopped` becomes true
  // meanwhile, it ends early and is good for nothing.
  explicit InvertedLists(const Matrix& points, const std::atomic<bool>* stopped = nullptr);

  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // The rows of one list, ascending.
  std::vector<int64_t> RowsOf(int64_t list) const;

  // The `count` lists whose centroids are nearest to the query (k values), nearest first.
  std::vector<int64_t> Nearest(const RowVector& query, int64_t count) const;

  // Offers all rows of a list that may be among the nearest so far. Those that are passed over are
  // certainly farther, whatever single precision has lost, so that what remains are the very rows
  // and distances a scan of the list in double would have left.
  void Scan(int64_t list, const RowVector& query, NearestSoFar* nearest) const;

 private:
  Eigen::VectorXf Scaled(const RowVector& point) const;
  FloatMatrix Scaled() const;
  void Fill(const FloatMatrix& scaled, const std::vector<int64_t>& list_of_row);

  const Matrix& points_;
  RowVector centre_;
  double scale_;
  // Coordinates are columns, so that one instruction does the same for many points.
  Eigen::MatrixXf centroids_;            // lists x k
  std::vector<int64_t> starts_;          // where each list begins, and where the last ends
  std::vector<int64_t> rows_;            // of the points, list by list
  std::vector<Eigen::MatrixXf> copies_;  // one for each list: its length x k
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_INDEX_INVERTED_LISTS_H_

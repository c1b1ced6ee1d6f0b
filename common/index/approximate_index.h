// Approximate nearest neighbours by an inverted file (IVF) of measured recall.
#ifndef PRIVATEMAIL_COMMON_INDEX_APPROXIMATE_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_APPROXIMATE_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/exact_index.h"
#include "common/index/screened_points.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// n x k points in about 2 sqrt(n) lists, the clusters of a k-means (FAISS, on a sample, fixed seed:
// equal points give equal lists). Immutable and thread-safe. Searches use neither OpenMP nor BLAS;
// the constructor does, on the calling thread.
class InvertedLists {
 public:
  // points: ScreenedPoints::CanScreen their box; they must outlive this. O(n sqrt(n) k) time. If
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
  std::vector<int64_t> Nearest(const RowVector& scaled, int64_t count) const;

  ScreenedPoints lists_;       // one group a list
  Eigen::MatrixXf centroids_;  // lists x k, scaled as the points are
};

// An inverted file: a search scans the lists whose centroids are nearest to the query, exactly and
// in double, and misses neighbours in other lists. The number of lists is chosen by measuring the
// recall. Immutable and thread-safe. Sees only the gallery's coordinates, nothing of a searcher.
class ApproximateIndex {
 public:
  static constexpr int64_t kRecallNeighbors = 8;  // recall@8 is measured
  static constexpr int kRecallQueries = 400;
  static constexpr int kRowsPerResult = 64;

  struct Quality {
    int64_t lists = 0;
    int64_t probed = 0;  // lists that a search scans
    // Share of the exact kRecallNeighbors nearest rows that a search returns, for the worse of two
    // halves of the queries:
    // - rows displaced by half the difference of two rows of their list (items not in the gallery)
    // - midpoints of any two rows (slots that noise moved between the classes)
    double recall = 0;
  };

  // Probes the fewest lists that reach `recall` (0 to 1). `exact` must outlive the index. O(n
  // sqrt(n) k) time and kRecallQueries exact searches. Equal points give equal indexes. Null if
  // - more than a quarter of the lists would be probed: the exact index is as fast
  // - single precision cannot represent the points
  // - `stopped` becomes true
  static std::unique_ptr<const ApproximateIndex> Make(const ExactIndex& exact, double recall,
                                                      const std::atomic<bool>* stopped = nullptr);

  // As ExactIndex::Search, but may miss rows of lists that are not probed. Always returns
  // min(count, n) rows that are not hidden; searches exactly if the probed lists hold too few, or
  // on average fewer than kRowsPerResult * count.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* hidden = nullptr) const;

  const Quality& quality() const { return quality_; }

 private:
  ApproximateIndex(const ExactIndex& exact, const std::atomic<bool>* stopped)
      : exact_(exact), lists_(exact.points(), stopped) {}

  bool ChooseProbed(double recall, const std::atomic<bool>* stopped);
  double RecallOf(const Matrix& queries, const std::vector<std::vector<Neighbor>>& nearest,
                  int64_t probed) const;
  Matrix Displaced() const;
  Matrix Midpoints() const;

  const ExactIndex& exact_;
  const InvertedLists lists_;
  Quality quality_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_APPROXIMATE_INDEX_H_

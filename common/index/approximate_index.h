// Nearest neighbours among a few lists of points, nearly always the true ones.
#ifndef PRIVATEMAIL_COMMON_INDEX_APPROXIMATE_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_APPROXIMATE_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "common/index/exact_index.h"
#include "common/index/inverted_lists.h"

namespace privatemail {

// An inverted file (IVF): a search looks at the lists whose centroids are nearest to the query, and
// finds there exactly what a scan of them in double would. What it misses lies in other lists. How
// many lists that are is measured when it is made. Immutable and thread-safe. Knows coordinates of
// the gallery only, nothing of a searcher.
class ApproximateIndex {
 public:
  static constexpr int64_t kCount = 8;  // neighbours for which the recall is measured
  static constexpr int kQueries = 400;  // it is measured on
  static constexpr int kRowsPerResult = 64;

  struct Quality {
    int64_t lists = 0;
    int64_t probed = 0;  // of them, by a search
    // The share of the exact index's kCount nearest rows that a search finds, equal distances or
    // not. Half of the queries are rows displaced by half the difference of two others of their
    // list: items that the gallery does not have. The other half are midpoints of two rows
    // anywhere: slots that noise has brought between the classes. This is the share of the worse
    // half.
    double recall = 0;
  };

  // Probes as few lists as reach `recall` (0 to 1). Null where it takes more than a quarter of
  // them, or single precision cannot hold the points: then the exact index is as good. `exact` must
  // outlive it. O(n sqrt(n) k) time, and kQueries exact searches. Equal points give equal indexes.
  // Null also when `stopped` becomes true meanwhile.
  static std::unique_ptr<const ApproximateIndex> Make(const ExactIndex& exact, double recall,
                                                      const std::atomic<bool>* stopped = nullptr);

  // As ExactIndex::Search, but that a row whose list is not probed is missed. min(count, n) rows
  // that are not hidden in any case: where the probed lists have fewer, or less than kRowsPerResult
  // times `count` on an average, it is the exact search.
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

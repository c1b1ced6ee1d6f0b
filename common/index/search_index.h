// The search index of a collection: exact, or approximate once that is built.
#ifndef PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/approximate_index.h"
#include "common/index/exact_index.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

struct IndexOptions {
  // Allows missing a few of the nearest rows. Indexes of few columns or few rows stay exact, since
  // that is fast.
  bool approximate = false;
  double recall = .99;  // minimum, 0 to 1; if it is not reached, the index stays exact
};

// An exact index, and an optional approximate one beside it. Thread-safe.
class SearchIndex {
 public:
  static constexpr Eigen::Index kMinApproximateRows = 10'000;

  // Exact, and ready at once.
  SearchIndex(Matrix points, const IndexOptions& options);

  // Builds the approximate index if it is enabled and pays. The exact one answers until then, and
  // after a failure. Does nothing after the first call; one call at a time. O(n sqrt(n) k) time;
  // ends within seconds of `stopped`.
  void BuildApproximateIndex(const std::atomic<bool>* stopped = nullptr) const;

  Eigen::Index size() const { return exact_->size(); }
  // Whether searches take microseconds, while few rows are hidden. An inverted file scans thousands
  // of rows and may fall back to an exact search.
  bool IsFast() const { return exact_->has_r_tree(); }
  // "exact, R-tree", "exact, k-d tree", "IVF of 2000 lists, 12 probed, recall@8 .993 on 400
  // queries", or the reason why it is (still) exact.
  std::string description() const;

  // As ExactIndex::Search and ApproximateIndex::Search.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* hidden = nullptr) const;
  const ExactIndex& exact() const { return *exact_; }

 private:
  struct Approximate {
    std::unique_ptr<const ApproximateIndex> index;  // null: none
    std::string description;
  };

  bool ShouldBuildApproximate() const;
  std::string ExactDescription() const;
  Approximate TryApproximate(const std::atomic<bool>* stopped) const;

  std::unique_ptr<const ExactIndex> exact_;
  IndexOptions options_;
  mutable std::unique_ptr<const Approximate> built_;
  mutable std::atomic<const Approximate*> approximate_ = nullptr;  // built_.get() once built
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_

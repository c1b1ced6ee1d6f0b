// The index that answers, by what an operator wants.
#ifndef PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "common/index/approximate_index.h"
#include "common/index/exact_index.h"

namespace privatemail {

struct IndexOptions {
  // Misses a few of the nearest where that is faster. An exact index of few columns looks at less
  // still, and one of few rows is small: these stay exact.
  bool approximate = false;
  double recall = .99;  // to be reached, 0 to 1; otherwise it is exact
};

// An exact index and maybe an approximate one beside it. Thread-safe.
class SearchIndex {
 public:
  static constexpr Eigen::Index kMinApproximateRows = 10'000;

  // Exact, and so fit to answer at once.
  SearchIndex(Matrix points, const IndexOptions& options);

  // Makes the approximate index where one is wanted and pays, O(n sqrt(n) k); it answers from then
  // on. Searches go on meanwhile. What goes wrong leaves the exact one. Call once. When `stopped`
  // becomes true it gives up, which may take seconds.
  void BuildApproximateIndex(const std::atomic<bool>* stopped = nullptr) const;

  Eigen::Index size() const { return exact_->size(); }
  // Whether every search takes microseconds. One of an inverted file looks at thousands of rows,
  // and may have to be exact.
  bool IsFast() const { return exact_->has_tree(); }
  // "exact, R-tree", "exact, scan", "IVF of 2000 lists, 12 probed, recall@8 .993 on 400 queries",
  // or why it is exact, still or after all.
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
  mutable std::unique_ptr<const Approximate> made_;
  mutable std::atomic<const Approximate*> approximate_ = nullptr;  // what is in made_, once it is
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_SEARCH_INDEX_H_

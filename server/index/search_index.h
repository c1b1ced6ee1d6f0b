// The index that answers, by what an operator wants.
#ifndef PRIVATEMAIL_SERVER_INDEX_SEARCH_INDEX_H_
#define PRIVATEMAIL_SERVER_INDEX_SEARCH_INDEX_H_

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "server/index/approximate_index.h"
#include "server/index/exact_index.h"

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
  static constexpr Eigen::Index kFewestApproximateRows = 10'000;

  // The exact index is there at once. An approximate one is made on a thread of its own and answers
  // from when it is ready, if there is memory for it.
  SearchIndex(Matrix points, const IndexOptions& options);
  ~SearchIndex();  // gives up one that is being made, which may take a second

  // Returns when nothing is being made.
  void AwaitApproximate() const;

  Eigen::Index size() const { return exact_->size(); }
  // Whether every search takes microseconds. One of an inverted file looks at thousands of rows,
  // and may have to be exact.
  bool IsBrief() const { return exact_->has_tree(); }
  // "exact, k-d tree", "exact, scan", "IVF of 2000 lists, 12 probed, recall@8 .993 on 400 queries",
  // or why it is exact, still or after all.
  std::string description() const;

  // As ExactIndex::Search and ApproximateIndex::Search.
  std::vector<Neighbor> Search(const RowVector& query, int64_t count,
                               const std::vector<bool>* hidden = nullptr) const;
  // Exact in any case.
  ExactIndex::Part Restrict(std::vector<int64_t> rows) const {
    return exact_->Restrict(std::move(rows));
  }

 private:
  struct Approximate {
    std::unique_ptr<const ApproximateIndex> index;  // null: none
    std::string description;
  };

  std::string ExactDescription() const;
  Approximate MakeApproximate(double recall) const;
  // Null: none, or none yet.
  const Approximate* approximate() const;

  std::unique_ptr<const ExactIndex> exact_;
  std::atomic<bool> stopped_ = false;
  std::shared_future<Approximate> approximate_;  // not valid: none is wanted
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_INDEX_SEARCH_INDEX_H_

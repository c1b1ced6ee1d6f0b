#include "common/index/nearest_others.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/index/k_means.h"

namespace privatemail {
namespace {

using Rows = std::vector<Eigen::Index>;

constexpr int64_t kProbed = 32;
// Average queries of a list, enough for matrix products to pay.
constexpr int64_t kQueriesOfList = 32;
// With fewer lists, the probed ones would be most of the gallery.
static_assert(kManyQueries / kQueriesOfList >= 4 * kProbed);

bool IsApproximate(int64_t items, int64_t queries) {
  return items >= kLargeGallery && queries >= kManyQueries;
}

// Returns the number of lists with which finding an item's list takes as long as searching lists.
int64_t CountLists(int64_t queries) {
  return std::min(std::llround(std::sqrt(kProbed * queries)),
                  static_cast<long long>(queries / kQueriesOfList));
}

// Returns for each of `count` values the places where `values` has it.
std::vector<Rows> GroupRows(const std::vector<int64_t>& values, int64_t count) {
  std::vector<Rows> places(static_cast<size_t>(count));
  for (size_t at = 0; at < values.size(); ++at) {
    places[static_cast<size_t>(values[at])].push_back(static_cast<Eigen::Index>(at));
  }
  return places;
}

// Some rows of a matrix, copied row by row.
FloatMatrix Copy(const FloatMatrix& matrix, const Rows& rows) {
  FloatMatrix some(std::ssize(rows), matrix.cols());
  for (Eigen::Index row = 0; row < some.rows(); ++row) {
    some.row(row) = matrix.row(rows[static_cast<size_t>(row)]);
  }
  return some;
}

// The items found so far for all queries, one more than wanted of each.
class Searched {
 public:
  Searched(FloatMatrix queries, int64_t count)
      : queries_(std::move(queries)),
        count_(static_cast<size_t>(count)),
        nearest_(static_cast<size_t>(queries_.rows())) {}

  const FloatMatrix& queries() const { return queries_; }

  // Compares some queries with some rows of a block that begins with item `first`.
  void Search(const Rows& queries, Eigen::Index first, const FloatMatrix& block, const Rows& rows,
              const std::atomic<bool>& stopped) {
    const auto near = NearestItems(Copy(queries_, queries), Copy(block, rows),
                                   static_cast<int64_t>(count_), stopped);
    for (size_t i = 0; i < queries.size(); ++i) {
      std::vector<NearPoint>& all = nearest_[static_cast<size_t>(queries[i])];
      const auto old = std::ssize(all);
      all.reserve(2 * count_);
      for (const auto& [squared_distance, row] : near[i]) {
        all.push_back({squared_distance, first + rows[static_cast<size_t>(row)]});
      }
      std::inplace_merge(all.begin(), all.begin() + old, all.end(),
                         [](const NearPoint& a, const NearPoint& b) {
                           return a.squared_distance < b.squared_distance;
                         });
      all.resize(std::min(all.size(), count_));
    }
  }

  // Leaves out each query itself, or, where it was not found, the farthest item.
  std::vector<std::vector<int64_t>> Others(const Rows& queries) const {
    std::vector<std::vector<int64_t>> others;
    for (size_t query = 0; query < queries.size(); ++query) {
      std::vector<int64_t>& items = others.emplace_back();
      for (const NearPoint& near : nearest_[query]) items.push_back(near.row);
      const auto self = std::find(items.begin(), items.end(), queries[query]);
      items.erase(self != items.end() ? self : items.end() - 1);
    }
    return others;
  }

 private:
  const FloatMatrix queries_;
  const size_t count_;
  std::vector<std::vector<NearPoint>> nearest_;  // rows of the source
};

absl::Status SearchAll(const RowSource& items, const std::atomic<bool>& stopped,
                       Searched* searched) {
  Rows queries(static_cast<size_t>(searched->queries().rows()));
  std::iota(queries.begin(), queries.end(), 0);
  return VisitBlocks(items, [&](Eigen::Index first, const FloatMatrix& block) {
    Rows rows(static_cast<size_t>(block.rows()));
    std::iota(rows.begin(), rows.end(), 0);
    searched->Search(queries, first, block, rows, stopped);
    return CheckNotStopped(stopped);
  });
}

// Queries of a list are compared with the same items, and many at once.
absl::Status SearchLists(const RowSource& items, const std::atomic<bool>& stopped,
                         Searched* searched) {
  const int64_t count = CountLists(searched->queries().rows());
  PM_ASSIGN_OR_RETURN(FloatMatrix sample,
                      ReadRows(items, KMeansSample(items.rows(), count, kRoughKMeans), &stopped));
  const FloatMatrix centroids = KMeans(sample, count, kRoughKMeans, [&] { return stopped.load(); });
  sample.resize(0, 0);
  const auto probed = NearestItems(centroids, centroids, kProbed, stopped);
  const std::vector<int64_t> list_of_query =
      NearestCentroids(searched->queries(), centroids, &stopped);
  PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
  const std::vector<Rows> queries_in = GroupRows(list_of_query, count);
  return VisitBlocks(items, [&](Eigen::Index first, const FloatMatrix& block) {
    const std::vector<int64_t> list_of_row = NearestCentroids(block, centroids, &stopped);
    PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
    const std::vector<Rows> rows_in = GroupRows(list_of_row, count);
    const auto most = static_cast<size_t>(kProbed * block.rows() / count + 1);
    for (size_t list = 0; list < queries_in.size(); ++list) {
      if (queries_in[list].empty()) continue;
      Rows rows;
      for (const NearPoint& near : probed[list]) {
        const Rows& all = rows_in[static_cast<size_t>(near.row)];
        const size_t step = (all.size() + most - 1) / most;
        for (size_t at = 0; at < all.size(); at += step) rows.push_back(all[at]);
      }
      searched->Search(queries_in[list], first, block, rows, stopped);
      PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::vector<std::vector<int64_t>>> NearestOthers(const RowSource& items,
                                                                const Rows& queries, int64_t count,
                                                                const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(FloatMatrix rows, ReadRows(items, queries, &stopped));
  Searched searched(std::move(rows), count + 1);
  PM_RETURN_IF_ERROR(IsApproximate(items.rows(), std::ssize(queries))
                         ? SearchLists(items, stopped, &searched)
                         : SearchAll(items, stopped, &searched));
  return searched.Others(queries);
}

int64_t MemoryOfNearestOthers(int64_t items, int64_t cols, int64_t queries, int64_t count) {
  constexpr int64_t kRow = sizeof(int64_t), kValue = sizeof(float);
  constexpr int64_t kHeader = sizeof(std::vector<int64_t>);
  // Twice with distances, what a block adds, and the result.
  const int64_t found = queries * ((count + 1) * 7 * kRow + 4 * kHeader);
  const int64_t searched = 2 * std::min<int64_t>(items, RowsOfBlock(cols));  // a block, copied
  const int64_t lists = IsApproximate(items, queries) ? CountLists(queries) : 0;
  const int64_t sample = std::min(items, lists * kRoughKMeans.points_per_centroid);
  const int64_t rows = 2 * queries + 2 * lists + std::max(searched, sample);
  // Numbers of the rows, and of the sample.
  return found + rows * (cols * kValue + 2 * kRow) + (lists == 0 ? 0 : items * kRow);
}

}  // namespace privatemail

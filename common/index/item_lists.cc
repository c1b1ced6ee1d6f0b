#include "common/index/item_lists.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/index/k_means.h"

namespace privatemail {

std::vector<std::vector<Eigen::Index>> PlacesOf(const std::vector<int64_t>& values, int64_t count) {
  std::vector<std::vector<Eigen::Index>> places(static_cast<size_t>(count));
  for (size_t at = 0; at < values.size(); ++at) {
    places[static_cast<size_t>(values[at])].push_back(static_cast<Eigen::Index>(at));
  }
  return places;
}

namespace {

using Rows = std::vector<Eigen::Index>;

// Groups around an item's own with whose lists it is compared.
constexpr int64_t kNearGroups = 8;

// matrix(rows, Eigen::all), copied row by row.
FloatMatrix RowsOf(const FloatMatrix& matrix, const Rows& rows) {
  FloatMatrix some(std::ssize(rows), matrix.cols());
  for (Eigen::Index row = 0; row < some.rows(); ++row) {
    some.row(row) = matrix.row(rows[static_cast<size_t>(row)]);
  }
  return some;
}

// The lists of some groups, and the groups around each. Unspecified if `stopped` becomes true.
class GroupedLists {
 public:
  GroupedLists(const FloatMatrix& sample, int64_t lists, const std::atomic<bool>& stopped)
      : groups_(KMeans(sample, std::llround(std::sqrt(static_cast<double>(lists))), kRoughKMeans,
                       [&] { return stopped.load(); })) {
    std::vector<Rows> rows_of =
        PlacesOf(NearestCentroids(sample, groups_, &stopped), groups_.rows());
    RemoveEmptyGroups(&rows_of);
    std::vector<FloatMatrix> of_groups;
    std::vector<Rows> numbers(rows_of.size());  // of each group's lists
    for (size_t group = 0; group < rows_of.size(); ++group) {
      const int64_t size = std::ssize(rows_of[group]);
      if (stopped) return;
      const int64_t count = std::max<int64_t>(1, lists * size / sample.rows());
      of_groups.push_back(KMeans(RowsOf(sample, rows_of[group]), count, kRoughKMeans,
                                 [&] { return stopped.load(); }));
      for (int64_t i = 0; i < count; ++i) numbers[group].push_back(count_++);
    }
    centroids_.resize(count_, sample.cols());
    for (Eigen::Index first = 0; const FloatMatrix& some : of_groups) {
      centroids_.middleRows(first, some.rows()) = some;
      first += some.rows();
    }
    const NearPoints near = NearestItems(groups_, groups_, kNearGroups, stopped);
    for (const std::vector<int64_t>& around : near.rows) {
      Rows& candidates = candidates_.emplace_back();
      for (const int64_t group : around) {
        const Rows& some = numbers[static_cast<size_t>(group)];
        candidates.insert(candidates.end(), some.begin(), some.end());
      }
    }
  }

  // The list of each row.
  std::vector<int64_t> ListsOf(const FloatMatrix& rows, const std::atomic<bool>& stopped) const {
    std::vector<int64_t> lists(static_cast<size_t>(rows.rows()));
    const std::vector<Rows> rows_of =
        PlacesOf(NearestCentroids(rows, groups_, &stopped), groups_.rows());
    for (size_t group = 0; group < rows_of.size() && !stopped; ++group) {
      if (rows_of[group].empty()) continue;
      const std::vector<int64_t> nearest = NearestCentroids(
          RowsOf(rows, rows_of[group]), RowsOf(centroids_, candidates_[group]), &stopped);
      for (size_t i = 0; i < nearest.size(); ++i) {
        lists[static_cast<size_t>(rows_of[group][i])] =
            candidates_[group][static_cast<size_t>(nearest[i])];
      }
    }
    return lists;
  }

  FloatMatrix TakeCentroids() && { return std::move(centroids_); }

 private:
  // With few distinct rows, k-means makes groups that are nearest to none.
  void RemoveEmptyGroups(std::vector<Rows>* rows_of) {
    Rows used;
    for (size_t group = 0; group < rows_of->size(); ++group) {
      if (!(*rows_of)[group].empty()) used.push_back(static_cast<Eigen::Index>(group));
    }
    groups_ = RowsOf(groups_, used);
    std::erase_if(*rows_of, [](const Rows& rows) { return rows.empty(); });
  }

  FloatMatrix groups_;  // their centroids
  Eigen::Index count_ = 0;
  FloatMatrix centroids_;         // of all lists
  std::vector<Rows> candidates_;  // of each group: the lists of the groups around it
};

// With few distinct items, k-means makes centroids that are nearest to none.
void RemoveEmptyLists(ItemLists* lists) {
  std::vector<int64_t> number(static_cast<size_t>(lists->centroids.rows()));
  for (const int64_t list : lists->list_of_item) number[static_cast<size_t>(list)] = 1;
  Rows used;
  for (size_t list = 0; list < number.size(); ++list) {
    if (number[list] == 0) continue;
    number[list] = std::ssize(used);
    used.push_back(static_cast<Eigen::Index>(list));
  }
  lists->centroids = RowsOf(lists->centroids, used);
  for (int64_t& list : lists->list_of_item) list = number[static_cast<size_t>(list)];
}

}  // namespace

absl::StatusOr<ItemLists> MakeItemLists(const RowSource& items, int64_t lists,
                                        const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(FloatMatrix sample,
                      ReadRows(items, KMeansSample(items.rows(), lists, kRoughKMeans), &stopped));
  ItemLists made;
  made.list_of_item.reserve(static_cast<size_t>(items.rows()));
  const auto assign = [&](auto lists_of) {
    return VisitBlocks(items, [&](Eigen::Index /*first*/, const FloatMatrix& block) {
      const std::vector<int64_t> some = lists_of(block);
      made.list_of_item.insert(made.list_of_item.end(), some.begin(), some.end());
      return CheckNotStopped(stopped);
    });
  };
  if (lists <= kMaxFlatLists) {
    made.centroids = KMeans(sample, lists, kRoughKMeans, [&] { return stopped.load(); });
    sample.resize(0, 0);
    PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
    PM_RETURN_IF_ERROR(assign([&](const FloatMatrix& block) {
      return NearestCentroids(block, made.centroids, &stopped);
    }));
  } else {
    GroupedLists grouped(sample, lists, stopped);
    sample.resize(0, 0);
    PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
    PM_RETURN_IF_ERROR(
        assign([&](const FloatMatrix& block) { return grouped.ListsOf(block, stopped); }));
    made.centroids = std::move(grouped).TakeCentroids();
  }
  RemoveEmptyLists(&made);
  return made;
}

}  // namespace privatemail

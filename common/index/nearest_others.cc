#include "common/index/nearest_others.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/index/k_means.h"

namespace privatemail {
namespace {

using Rows = std::vector<Eigen::Index>;
using Nearest = std::vector<std::vector<int64_t>>;

constexpr int64_t kProbed = 32;
// Average queries of a list, enough for matrix products to pay.
constexpr int64_t kQueriesOfList = 32;
// With fewer lists, the probed ones would be most of the gallery.
static_assert(kManyQueries / kQueriesOfList >= 4 * kProbed);
// Average items of a list where that makes more than sqrt(n) lists.
constexpr int64_t kMaxItemsOfList = 2048;

// Groups around an item's own with whose lists it is compared.
constexpr int64_t kNearGroups = 8;

bool IsApproximate(int64_t items, int64_t queries) {
  return items >= kLargeGallery && queries >= kManyQueries;
}

int64_t CountLists(int64_t items, int64_t queries) {
  const auto root = static_cast<int64_t>(std::sqrt(items));
  return std::min(std::max(root, items / kMaxItemsOfList), queries / kQueriesOfList);
}

// Removes the query itself, or else the farthest: searches return one row too many.
void RemoveQuery(int64_t query, std::vector<int64_t>* nearest) {
  if (nearest->empty()) return;  // stopped
  const auto self = std::find(nearest->begin(), nearest->end(), query);
  nearest->erase(self != nearest->end() ? self : nearest->end() - 1);
}

// Adds the points of a block, which begins at row `first`, to those of earlier blocks.
void Merge(const NearPoints& block, Eigen::Index first, int64_t count, NearPoints* all) {
  for (size_t query = 0; query < block.rows.size(); ++query) {
    std::vector<int64_t> rows;
    std::vector<float> distances;
    const std::vector<float>& old = all->squared_distances[query];
    const std::vector<float>& added = block.squared_distances[query];
    for (size_t o = 0, a = 0; std::ssize(rows) < count && (o < old.size() || a < added.size());) {
      const bool keeps = a == added.size() || (o < old.size() && old[o] <= added[a]);
      rows.push_back(keeps ? all->rows[query][o] : first + block.rows[query][a]);
      distances.push_back(keeps ? old[o++] : added[a++]);
    }
    all->rows[query] = std::move(rows);
    all->squared_distances[query] = std::move(distances);
  }
}

absl::StatusOr<Nearest> SearchAll(const RowSource& items, const Rows& queries, int64_t count,
                                  const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, ReadRows(items, queries));
  NearPoints nearest{Nearest(queries.size()), std::vector<std::vector<float>>(queries.size())};
  PM_RETURN_IF_ERROR(VisitBlocks(items, [&](Eigen::Index first, const FloatMatrix& block) {
    if (!stopped) {
      Merge(NearestItems(rows, block, count + 1, stopped), first, count + 1, &nearest);
    }
    return absl::OkStatus();
  }));
  for (size_t query = 0; query < queries.size(); ++query) {
    RemoveQuery(queries[query], &nearest.rows[query]);
  }
  return std::move(nearest.rows);
}

// matrix(rows, Eigen::all), copied row by row.
FloatMatrix RowsOf(const FloatMatrix& matrix, const Rows& rows) {
  FloatMatrix some(std::ssize(rows), matrix.cols());
  for (Eigen::Index row = 0; row < some.rows(); ++row) {
    some.row(row) = matrix.row(rows[static_cast<size_t>(row)]);
  }
  return some;
}

// For each of `count` values the places where `values` has it.
std::vector<Rows> PlacesOf(const std::vector<int64_t>& values, int64_t count) {
  std::vector<Rows> places(static_cast<size_t>(count));
  for (size_t at = 0; at < values.size(); ++at) {
    places[static_cast<size_t>(values[at])].push_back(static_cast<Eigen::Index>(at));
  }
  return places;
}

// The lists of some groups, and the groups around each.
class GroupedLists {
 public:
  GroupedLists(const FloatMatrix& sample, int64_t lists, const std::atomic<bool>& stopped)
      : groups_(KMeans(sample, std::llround(std::sqrt(static_cast<double>(lists))), kRoughKMeans)) {
    const std::vector<Rows> rows_of =
        PlacesOf(NearestCentroids(sample, groups_, &stopped), groups_.rows());
    std::vector<FloatMatrix> of_groups;
    std::vector<Rows> numbers(rows_of.size());  // of each group's lists
    for (size_t group = 0; group < rows_of.size(); ++group) {
      const int64_t size = std::ssize(rows_of[group]);
      if (size == 0 || stopped) continue;
      const int64_t count = std::max<int64_t>(1, lists * size / sample.rows());
      of_groups.push_back(KMeans(RowsOf(sample, rows_of[group]), count, kRoughKMeans));
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
  const FloatMatrix groups_;  // their centroids
  Eigen::Index count_ = 0;
  FloatMatrix centroids_;         // of all lists
  std::vector<Rows> candidates_;  // of each group: the lists of the groups around it
};

// The items of each list, one list after the other.
struct ListOrder {
  std::vector<int64_t> items;        // ascending in each list
  std::vector<Eigen::Index> begins;  // of each list, and the end
};

ListOrder OrderByList(const ItemLists& lists) {
  ListOrder order{std::vector<int64_t>(lists.list_of_item.size()),
                  Rows(static_cast<size_t>(lists.centroids.rows()) + 1)};
  for (const int64_t list : lists.list_of_item) ++order.begins[static_cast<size_t>(list) + 1];
  std::partial_sum(order.begins.begin(), order.begins.end(), order.begins.begin());
  Rows next = order.begins;
  for (size_t item = 0; item < lists.list_of_item.size(); ++item) {
    const auto list = static_cast<size_t>(lists.list_of_item[item]);
    order.items[static_cast<size_t>(next[list]++)] = static_cast<int64_t>(item);
  }
  return order;
}

// The rows of some lists, and the items that they are.
class NearLists {
 public:
  NearLists(const RowBlocks& by_list, const ListOrder& order) : by_list_(by_list), order_(order) {}

  absl::Status Read(const std::vector<int64_t>& lists) {
    items_.clear();
    for (const int64_t list : lists) {
      const auto begin = order_.items.begin() + Begin(list);
      items_.insert(items_.end(), begin, begin + Size(list));
    }
    // Grows seldom: new memory of this size costs more than it takes to fill it.
    if (rows_.rows() < std::ssize(items_))
      rows_.resize(5 * std::ssize(items_) / 4, by_list_.cols());
    Eigen::Index at = 0;
    for (const int64_t list : lists) {
      PM_RETURN_IF_ERROR(by_list_.Read(Begin(list), rows_.middleRows(at, Size(list))));
      at += Size(list);
    }
    return absl::OkStatus();
  }
  // Those that were read last.
  Eigen::Ref<const FloatMatrix> rows() const { return rows_.topRows(std::ssize(items_)); }
  int64_t ItemOf(int64_t row) const { return items_[static_cast<size_t>(row)]; }

 private:
  Eigen::Index Begin(int64_t list) const { return order_.begins[static_cast<size_t>(list)]; }
  Eigen::Index Size(int64_t list) const { return Begin(list + 1) - Begin(list); }

  const RowBlocks& by_list_;
  const ListOrder& order_;
  FloatMatrix rows_;            // and room for more
  std::vector<int64_t> items_;  // of the rows
};

// All queries of a list are compared with the same items.
absl::StatusOr<Nearest> SearchLists(const RowSource& items, const Rows& queries, int64_t count,
                                    const std::atomic<bool>& stopped) {
  Nearest nearest(queries.size());
  PM_ASSIGN_OR_RETURN(ItemLists lists,
                      MakeItemLists(items, CountLists(items.rows(), std::ssize(queries)), stopped));
  if (stopped) return nearest;
  const Nearest probed = NearestItems(lists.centroids, lists.centroids, kProbed, stopped).rows;
  const ListOrder order = OrderByList(lists);
  std::vector<int64_t> list_of_query;
  for (const Eigen::Index query : queries) {
    list_of_query.push_back(lists.list_of_item[static_cast<size_t>(query)]);
  }
  const std::vector<Rows> queries_in = PlacesOf(list_of_query, lists.centroids.rows());
  lists = {};
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const RowBlocks> by_list, items.Reordered(order.items));
  NearLists near(*by_list, order);
  for (size_t list = 0; list < queries_in.size() && !stopped; ++list) {
    if (queries_in[list].empty()) continue;
    PM_RETURN_IF_ERROR(near.Read(probed[list]));
    Rows list_queries;
    for (const Eigen::Index query : queries_in[list]) {
      list_queries.push_back(queries[static_cast<size_t>(query)]);
    }
    PM_ASSIGN_OR_RETURN(const FloatMatrix query_rows, ReadRows(items, list_queries));
    const Nearest found = NearestItems(query_rows, near.rows(), count + 1, stopped).rows;
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<int64_t>& rows = nearest[static_cast<size_t>(queries_in[list][i])];
      for (const int64_t place : found[i]) rows.push_back(near.ItemOf(place));
      RemoveQuery(list_queries[i], &rows);
    }
  }
  return nearest;
}

}  // namespace

absl::StatusOr<ItemLists> MakeItemLists(const RowSource& items, int64_t lists,
                                        const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(FloatMatrix sample,
                      ReadRows(items, KMeansSample(items.rows(), lists, kRoughKMeans)));
  ItemLists made;
  made.list_of_item.reserve(static_cast<size_t>(items.rows()));
  const auto assign = [&](auto lists_of) {
    return VisitBlocks(items, [&](Eigen::Index /*first*/, const FloatMatrix& block) {
      const std::vector<int64_t> some = lists_of(block);
      made.list_of_item.insert(made.list_of_item.end(), some.begin(), some.end());
      return absl::OkStatus();
    });
  };
  if (lists <= kMaxFlatLists) {
    made.centroids = KMeans(sample, lists, kRoughKMeans);
    sample.resize(0, 0);
    PM_RETURN_IF_ERROR(assign([&](const FloatMatrix& block) {
      return NearestCentroids(block, made.centroids, &stopped);
    }));
  } else {
    GroupedLists grouped(sample, lists, stopped);
    sample.resize(0, 0);
    PM_RETURN_IF_ERROR(
        assign([&](const FloatMatrix& block) { return grouped.ListsOf(block, stopped); }));
    made.centroids = std::move(grouped).TakeCentroids();
  }
  return made;
}

absl::StatusOr<Nearest> NearestOthers(const RowSource& items, const Rows& queries, int64_t count,
                                      const std::atomic<bool>& stopped) {
  return IsApproximate(items.rows(), std::ssize(queries))
             ? SearchLists(items, queries, count, stopped)
             : SearchAll(items, queries, count, stopped);
}

int64_t MemoryOfNearestOthers(int64_t items, int64_t cols, int64_t queries, int64_t count) {
  constexpr int64_t kRow = sizeof(int64_t), kValue = sizeof(float);
  const int64_t result = queries * (count + 1) * kRow;
  if (!IsApproximate(items, queries)) {
    const int64_t block = std::min<int64_t>(items, RowsOfBlock(cols));
    return result + queries * (count + 1) * kValue + (queries + block) * cols * kValue;
  }
  // Order and list of each item, or the order and its inverse. The sample of the k-means, or the
  // items of probed lists, which are at most twice as long as the average.
  const int64_t lists = CountLists(items, queries);
  const int64_t rows = std::min(
      items, std::max(lists * kRoughKMeans.points_per_centroid, 2 * kProbed * items / lists));
  return result + items * 2 * kRow + rows * cols * kValue;
}

}  // namespace privatemail

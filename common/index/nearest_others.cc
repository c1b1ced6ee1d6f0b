#include "common/index/nearest_others.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/index/item_lists.h"
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

// A multiple of what NearestItems passes to FAISS at once.
constexpr int64_t kQueriesAtOnce = 256;

bool IsApproximate(int64_t items, int64_t queries) {
  return items >= kLargeGallery && queries >= kManyQueries;
}

int64_t CountLists(int64_t items, int64_t queries) {
  const auto root = static_cast<int64_t>(std::sqrt(items));
  return std::min(std::max(root, items / kMaxItemsOfList), queries / kQueriesOfList);
}

// More than probed lists have on average, in multiples of the points that FAISS multiplies at once.
int64_t RowsReadAtOnce(int64_t items, int64_t lists) {
  constexpr int64_t kMultiple = 1024;
  return (2 * kProbed * items / lists / kMultiple + 1) * kMultiple;
}

// Removes the query itself, or else the farthest: searches return one row too many.
void RemoveQuery(int64_t query, std::vector<int64_t>* nearest) {
  const auto self = std::find(nearest->begin(), nearest->end(), query);
  nearest->erase(self != nearest->end() ? self : nearest->end() - 1);
}

NearPoints NoPoints(size_t queries) {
  return {Nearest(queries), std::vector<std::vector<float>>(queries)};
}

// Adds the points of a block to those of earlier blocks. item_of: of a row of the block.
template <typename ItemOf>
void Merge(const NearPoints& block, const ItemOf& item_of, int64_t count, NearPoints* all) {
  for (size_t query = 0; query < block.rows.size(); ++query) {
    std::vector<int64_t> rows;
    std::vector<float> distances;
    const std::vector<float>& old = all->squared_distances[query];
    const std::vector<float>& added = block.squared_distances[query];
    const size_t merged = std::min(static_cast<size_t>(count), old.size() + added.size());
    rows.reserve(merged);
    distances.reserve(merged);
    for (size_t o = 0, a = 0; std::ssize(rows) < count && (o < old.size() || a < added.size());) {
      const bool keeps = a == added.size() || (o < old.size() && old[o] <= added[a]);
      rows.push_back(keeps ? all->rows[query][o] : item_of(block.rows[query][a]));
      distances.push_back(keeps ? old[o++] : added[a++]);
    }
    all->rows[query] = std::move(rows);
    all->squared_distances[query] = std::move(distances);
  }
}

absl::StatusOr<Nearest> SearchAll(const RowSource& items, const Rows& queries, int64_t count,
                                  const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, ReadRows(items, queries, &stopped));
  NearPoints nearest = NoPoints(queries.size());
  PM_RETURN_IF_ERROR(VisitBlocks(items, [&](Eigen::Index first, const FloatMatrix& block) {
    const NearPoints found = NearestItems(rows, block, count + 1, stopped);
    Merge(
        found, [&](int64_t row) { return first + row; }, count + 1, &nearest);
    return CheckNotStopped(stopped);
  }));
  for (size_t query = 0; query < queries.size(); ++query) {
    RemoveQuery(queries[query], &nearest.rows[query]);
  }
  return std::move(nearest.rows);
}

// The items of each list, one list after the other.
struct ListOrder {
  std::vector<int64_t> items;        // ascending in each list, each at most once
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

// The positions of some rows but for those that equal `count` earlier ones, ascending. Rows of
// equal hashes count as equal. Takes 8 bytes a row, and a block.
absl::StatusOr<Rows> WithoutRepetitions(const RowSource& items, const Rows& rows, int64_t count,
                                        const std::atomic<bool>& stopped) {
  constexpr int kPositionBits = 32;
  std::vector<uint64_t> keys;  // hash and position
  keys.reserve(rows.size());
  const Eigen::Index step = RowsOfBlock(items.cols());
  for (Eigen::Index first = 0; first < std::ssize(rows); first += step) {
    const auto begin = rows.begin() + first;
    const Eigen::Index some = std::min(step, std::ssize(rows) - first);
    PM_ASSIGN_OR_RETURN(const FloatMatrix block, ReadRows(items, {begin, begin + some}, &stopped));
    for (Eigen::Index row = 0; row < some; ++row) {
      const std::string_view bytes(reinterpret_cast<const char*>(block.row(row).data()),
                                   static_cast<size_t>(block.cols()) * sizeof(float));
      const uint64_t hash = std::hash<std::string_view>()(bytes);
      keys.push_back(hash >> kPositionBits << kPositionBits | keys.size());
    }
  }
  std::sort(keys.begin(), keys.end());
  Rows kept;
  for (size_t i = 0, run = 0; i < keys.size(); ++i) {
    if (keys[i] >> kPositionBits != keys[run] >> kPositionBits) run = i;
    if (static_cast<int64_t>(i - run) >= count) continue;
    kept.push_back(static_cast<Eigen::Index>(static_cast<uint32_t>(keys[i])));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// Removes needless repetitions from lists of more than `max_size` items.
absl::Status RemoveRepetitions(const RowSource& items, int64_t count,
                               const std::atomic<bool>& stopped, int64_t max_size,
                               ListOrder* order) {
  Eigen::Index end = 0;  // of what is kept
  for (size_t list = 0; list + 1 < order->begins.size(); ++list) {
    const auto begin = order->items.begin() + std::exchange(order->begins[list], end);
    const auto list_end = order->items.begin() + order->begins[list + 1];
    if (list_end - begin <= max_size) {
      end = std::copy(begin, list_end, order->items.begin() + end) - order->items.begin();
      continue;
    }
    PM_ASSIGN_OR_RETURN(const Rows kept,
                        WithoutRepetitions(items, {begin, list_end}, count, stopped));
    for (const Eigen::Index position : kept) {
      order->items[static_cast<size_t>(end++)] = begin[position];
    }
  }
  order->begins.back() = end;
  order->items.resize(static_cast<size_t>(end));
  return absl::OkStatus();
}

// A searcher of lists: of each at most `max_size` items, of which `max_rows` are read at once.
class ListSearcher {
 public:
  ListSearcher(const RowBlocks& by_list, const ListOrder& order, int64_t max_size, int64_t max_rows)
      : by_list_(by_list), order_(order), max_size_(max_size), max_rows_(max_rows) {}

  // The `count` items of these lists that are nearest to each query. Of longer lists, different
  // turns search different parts, so that each item is found by some.
  absl::StatusOr<Nearest> Search(const FloatMatrix& queries, const std::vector<int64_t>& lists,
                                 int64_t count, size_t turn, const std::atomic<bool>& stopped) {
    NearPoints nearest = NoPoints(static_cast<size_t>(queries.rows()));
    std::vector<Range> left;
    for (const int64_t list : lists) left.push_back(PartOf(static_cast<size_t>(list), turn));
    for (auto next = left.begin(); next != left.end();) {
      PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
      PM_ASSIGN_OR_RETURN(next, ReadNext(next, left.end()));
      const NearPoints found =
          NearestItems(queries, rows_.topRows(std::ssize(items_)), count, stopped);
      const auto item_of = [&](int64_t row) { return items_[static_cast<size_t>(row)]; };
      Merge(found, item_of, count, &nearest);
    }
    return std::move(nearest.rows);
  }

 private:
  struct Range {
    Eigen::Index first, end;
  };
  using Ranges = std::vector<Range>::iterator;

  Range PartOf(size_t list, size_t turn) const {
    const Eigen::Index begin = order_.begins[list];
    const Eigen::Index size = order_.begins[list + 1] - begin;
    const Eigen::Index parts = (size + max_size_ - 1) / max_size_;  // no list is empty
    const Eigen::Index part = static_cast<Eigen::Index>(turn) % parts;
    return {begin + part * size / parts, begin + (part + 1) * size / parts};
  }

  // Returns the first range that is not read, or not to its end.
  absl::StatusOr<Ranges> ReadNext(Ranges next, Ranges end) {
    Eigen::Index sum = 0;
    for (auto at = next; at != end; ++at) sum += at->end - at->first;
    sum = std::min(sum, max_rows_);
    // Grows seldom: new memory of this size costs more than it takes to fill it.
    if (rows_.rows() < sum) rows_.resize(std::min(max_rows_, 5 * sum / 4), by_list_.cols());
    items_.clear();
    for (; std::ssize(items_) < sum; next += next->first == next->end ? 1 : 0) {
      const Eigen::Index at = std::ssize(items_);
      const Eigen::Index count = std::min(next->end - next->first, sum - at);
      PM_RETURN_IF_ERROR(by_list_.Read(next->first, rows_.middleRows(at, count)));
      const auto items = order_.items.begin() + std::exchange(next->first, next->first + count);
      items_.insert(items_.end(), items, items + count);
    }
    return next;
  }

  const RowBlocks& by_list_;
  const ListOrder& order_;
  const Eigen::Index max_size_;
  const Eigen::Index max_rows_;
  FloatMatrix rows_;            // those read last, and room for more
  std::vector<int64_t> items_;  // of the rows
};

// Queries of a list are compared with the same items, and many at once.
absl::StatusOr<Nearest> SearchLists(const RowSource& items, const Rows& queries, int64_t count,
                                    const std::atomic<bool>& stopped) {
  const int64_t wanted = CountLists(items.rows(), std::ssize(queries));
  PM_ASSIGN_OR_RETURN(ItemLists lists, MakeItemLists(items, wanted, stopped));
  const Nearest probed = NearestItems(lists.centroids, lists.centroids, kProbed, stopped).rows;
  PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
  ListOrder order = OrderByList(lists);
  std::vector<int64_t> list_of_query;
  list_of_query.reserve(queries.size());
  for (const Eigen::Index query : queries) {
    list_of_query.push_back(lists.list_of_item[static_cast<size_t>(query)]);
  }
  const std::vector<Rows> queries_in = PlacesOf(list_of_query, lists.centroids.rows());
  lists = {};
  const int64_t max_size = kProbed * items.rows() / wanted;
  PM_RETURN_IF_ERROR(RemoveRepetitions(items, count + 1, stopped, max_size, &order));
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const RowBlocks> by_list,
                      items.Reordered(order.items, stopped));
  ListSearcher searcher(*by_list, order, max_size, RowsReadAtOnce(items.rows(), wanted));
  Nearest nearest(queries.size());
  for (size_t list = 0; list < queries_in.size(); ++list) {
    const Rows& all = queries_in[list];
    size_t turn = list;
    for (auto next = all.begin(); next != all.end(); ++turn) {
      const auto begin = next;
      next += std::min<int64_t>(kQueriesAtOnce, all.end() - begin);
      Rows some;
      for (auto at = begin; at != next; ++at) some.push_back(queries[static_cast<size_t>(*at)]);
      PM_ASSIGN_OR_RETURN(const FloatMatrix rows, ReadRows(items, some, &stopped));
      PM_ASSIGN_OR_RETURN(Nearest found,
                          searcher.Search(rows, probed[list], count + 1, turn, stopped));
      for (size_t i = 0; i < found.size(); ++i) {
        RemoveQuery(some[i], &found[i]);
        nearest[static_cast<size_t>(begin[static_cast<int64_t>(i)])] = std::move(found[i]);
      }
    }
  }
  return nearest;
}

}  // namespace

absl::StatusOr<Nearest> NearestOthers(const RowSource& items, const Rows& queries, int64_t count,
                                      const std::atomic<bool>& stopped) {
  PM_ASSIGN_OR_RETURN(Nearest nearest, IsApproximate(items.rows(), std::ssize(queries))
                                           ? SearchLists(items, queries, count, stopped)
                                           : SearchAll(items, queries, count, stopped));
  PM_RETURN_IF_ERROR(CheckNotStopped(stopped));
  return nearest;
}

int64_t MemoryOfNearestOthers(int64_t items, int64_t cols, int64_t queries, int64_t count) {
  constexpr int64_t kRow = sizeof(int64_t), kValue = sizeof(float);
  constexpr int64_t kHeader = sizeof(std::vector<int64_t>);
  const int64_t result = queries * ((count + 1) * kRow + kHeader);
  const int64_t block = std::min<int64_t>(items, RowsOfBlock(cols));
  if (!IsApproximate(items, queries)) {
    // With distances, and twice: of a block and of those before it.
    const int64_t distances = queries * ((count + 1) * kValue + kHeader);
    return 2 * (result + distances) + (queries + block) * cols * kValue;
  }
  const int64_t lists = CountLists(items, queries);
  // Of the k-means the sample and its part in one group, which can be all of it, and centroids.
  const int64_t sample = std::min(items, lists * kRoughKMeans.points_per_centroid);
  const int64_t trained = (lists > kMaxFlatLists ? 2 : 1) * sample + 2 * lists;
  // A block and its part in one group, or in another order.
  const int64_t assigned = 2 * block + 2 * lists;
  const int64_t searched = std::min(items, RowsReadAtOnce(items, lists)) + kQueriesAtOnce;
  const int64_t rows = std::max({trained, assigned, searched});
  // Order and list of each item, or the order and its inverse. List of each query, and back.
  return result + items * 2 * kRow + queries * 3 * kRow + rows * (cols * kValue + 2 * kRow);
}

}  // namespace privatemail

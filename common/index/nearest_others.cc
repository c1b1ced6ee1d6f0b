#include "common/index/nearest_others.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/index/k_means.h"

namespace privatemail {
namespace {

using Rows = std::vector<Eigen::Index>;
using Nearest = std::vector<std::vector<int64_t>>;

constexpr KMeansEffort kEffort = {.iterations = 8, .points_per_centroid = 64};
constexpr int64_t kProbed = 32;
// Average queries of a list, enough for matrix products to pay.
constexpr int64_t kQueriesOfList = 32;
// With fewer lists, the probed ones would be most of the gallery.
static_assert(kManyQueries / kQueriesOfList >= 4 * kProbed);

// Removes the query itself, or else the farthest: searches return one row too many.
void RemoveQuery(int64_t query, std::vector<int64_t>* nearest) {
  if (nearest->empty()) return;  // stopped
  const auto self = std::find(nearest->begin(), nearest->end(), query);
  nearest->erase(self != nearest->end() ? self : nearest->end() - 1);
}

Nearest SearchAll(const FloatMatrix& items, const Rows& queries, int64_t count,
                  const std::atomic<bool>& stopped) {
  Nearest nearest = NearestItems(items(queries, Eigen::all), items, count + 1, stopped);
  for (size_t query = 0; query < nearest.size(); ++query)
    RemoveQuery(queries[query], &nearest[query]);
  return nearest;
}

// For each list the indices into `rows` of its rows.
std::vector<Rows> ByList(const Rows& rows, const std::vector<int64_t>& list_of_item,
                         int64_t lists) {
  std::vector<Rows> numbers(static_cast<size_t>(lists));
  for (size_t number = 0; number < rows.size(); ++number) {
    const int64_t list = list_of_item[static_cast<size_t>(rows[number])];
    numbers[static_cast<size_t>(list)].push_back(static_cast<Eigen::Index>(number));
  }
  return numbers;
}

// Row-wise copy: faster than Eigen's indexing by rows.
FloatMatrix RowsOf(const FloatMatrix& matrix, const Rows& rows) {
  FloatMatrix some(std::ssize(rows), matrix.cols());
  for (Eigen::Index row = 0; row < some.rows(); ++row) {
    some.row(row) = matrix.row(rows[static_cast<size_t>(row)]);
  }
  return some;
}

Rows Picked(const Rows& from, const Rows& numbers) {
  Rows picked;
  for (const Eigen::Index number : numbers) picked.push_back(from[static_cast<size_t>(number)]);
  return picked;
}

// All queries of a list are compared with the same items.
Nearest SearchLists(const FloatMatrix& items, const Rows& queries, int64_t count,
                    const std::atomic<bool>& stopped) {
  const int64_t lists = std::min(static_cast<int64_t>(std::sqrt(items.rows())),
                                 static_cast<int64_t>(std::ssize(queries)) / kQueriesOfList);
  const FloatMatrix centroids = KMeans(items, lists, kEffort);
  const std::vector<int64_t> list_of_item = NearestCentroids(items, centroids, &stopped);
  const Nearest probed = NearestItems(centroids, centroids, kProbed, stopped);
  Nearest nearest(queries.size());
  if (stopped) return nearest;
  Rows all(static_cast<size_t>(items.rows()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Rows> items_in = ByList(all, list_of_item, lists);
  const std::vector<Rows> queries_in = ByList(queries, list_of_item, lists);
  for (size_t list = 0; list < queries_in.size() && !stopped; ++list) {
    Rows near;
    for (const int64_t one : probed[list]) {
      const Rows& some = items_in[static_cast<size_t>(one)];
      near.insert(near.end(), some.begin(), some.end());
    }
    const FloatMatrix near_items = RowsOf(items, near);
    const Rows list_queries = Picked(queries, queries_in[list]);
    const Nearest found = NearestItems(RowsOf(items, list_queries), near_items, count + 1, stopped);
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<int64_t>& rows = nearest[static_cast<size_t>(queries_in[list][i])];
      for (const int64_t place : found[i]) rows.push_back(near[static_cast<size_t>(place)]);
      RemoveQuery(list_queries[i], &rows);
    }
  }
  return nearest;
}

}  // namespace

std::vector<std::vector<int64_t>> NearestOthers(const FloatMatrix& items, const Rows& queries,
                                                int64_t count, const std::atomic<bool>& stopped) {
  const bool many = items.rows() >= kLargeGallery && std::ssize(queries) >= kManyQueries;
  return many ? SearchLists(items, queries, count, stopped)
              : SearchAll(items, queries, count, stopped);
}

}  // namespace privatemail

#include "common/index/inverted_lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/index/k_means.h"

namespace privatemail {
namespace {

// Little effort suffices: the recall is measured.
constexpr KMeansEffort kEffort = {.iterations = 8, .points_per_centroid = 64};

// 2 sqrt(n). Doubling the number of lists makes the k-means four times as slow.
int64_t ListsFor(Eigen::Index rows) {
  return std::max<int64_t>(1, std::llround(2 * std::sqrt(static_cast<double>(rows))));
}

}  // namespace

InvertedLists::InvertedLists(const Matrix& points, const std::atomic<bool>* stopped)
    : lists_(points) {
  const FloatMatrix scaled = lists_.Scaled();
  const FloatMatrix centroids = KMeans(scaled, ListsFor(points.rows()), kEffort);
  const std::vector<int64_t> list_of_row = NearestCentroids(scaled, centroids, stopped);
  if (stopped != nullptr && *stopped) return;
  centroids_ = centroids;
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(centroids.rows()));
  for (size_t row = 0; row < list_of_row.size(); ++row) {
    rows[static_cast<size_t>(list_of_row[row])].push_back(static_cast<int64_t>(row));
  }
  for (std::vector<int64_t>& list : rows) lists_.AddGroup(std::move(list));
}

std::vector<int64_t> InvertedLists::Nearest(const Eigen::VectorXf& scaled, int64_t count) const {
  Eigen::ArrayXf distances;
  SquaredDistances(scaled, centroids_, &distances);
  std::vector<int64_t> lists(static_cast<size_t>(size()));
  std::iota(lists.begin(), lists.end(), 0);
  const auto nearer = [&](int64_t a, int64_t b) {
    return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
  };
  const auto end = lists.begin() + std::min(count, size());
  std::partial_sort(lists.begin(), end, lists.end(), nearer);
  lists.erase(end, lists.end());
  return lists;
}

const std::vector<int64_t>& InvertedLists::RowsAround(const RowVector& query) const {
  return lists_.RowsOf(Nearest(lists_.Scaled(query), 1).front());
}

std::vector<Neighbor> InvertedLists::Search(const RowVector& query, int64_t count,
                                            const std::vector<bool>* skipped,
                                            int64_t probed) const {
  const ScreenedPoints::Query prepared = lists_.Prepare(query);
  TopK nearest(count, skipped);
  for (const int64_t list : Nearest(prepared.scaled, probed)) {
    lists_.Scan(list, prepared, &nearest);
  }
  return nearest.Sorted();
}

}  // namespace privatemail

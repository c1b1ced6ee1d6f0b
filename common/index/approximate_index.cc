#include "common/index/approximate_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/index/k_means.h"

namespace privatemail {
namespace {

using Results = std::vector<std::vector<Neighbor>>;

constexpr int kQueriesOfEachKind = ApproximateIndex::kRecallQueries / 2;

// Nearly uniform, and the same with every standard library.
int64_t Below(int64_t end, std::mt19937_64* bits) {
  return static_cast<int64_t>((*bits)() % static_cast<uint64_t>(end));
}

bool IsSet(const std::atomic<bool>* stopped) { return stopped != nullptr && *stopped; }

// Results of queries after `stopped` are empty.
Results ExactResults(const ExactIndex& exact, const Matrix& queries,
                     const std::atomic<bool>* stopped) {
  Results nearest(static_cast<size_t>(queries.rows()));
  ParallelFor(static_cast<int>(queries.rows()), [&](int q) {
    if (IsSet(stopped)) return;
    nearest[static_cast<size_t>(q)] =
        exact.Search(queries.row(q), ApproximateIndex::kRecallNeighbors).front();
  });
  return nearest;
}

// 1, 2, 3, 4, 6, 8, 12, ...
int64_t NextProbed(int64_t probed) {
  if (probed < 2) return probed + 1;
  const bool power_of_two = (probed & (probed - 1)) == 0;
  return power_of_two ? probed + probed / 2 : probed / 3 * 4;
}

// 2 sqrt(n). Doubling the number of lists makes the k-means four times as slow.
int64_t ListsFor(Eigen::Index rows) {
  return std::max<int64_t>(1, std::llround(2 * std::sqrt(static_cast<double>(rows))));
}

// Squared distances of the rows of `columns` (n x k) to a point (k); distances: n.
void SquaredDistances(const Eigen::VectorXf& point, const Eigen::MatrixXf& columns,
                      Eigen::ArrayXf* distances) {
  *distances = Eigen::ArrayXf::Zero(columns.rows());
  for (Eigen::Index c = 0; c < columns.cols(); ++c) {
    *distances += (columns.col(c).array() - point[c]).square();
  }
}

}  // namespace

InvertedLists::InvertedLists(const Matrix& points, const std::atomic<bool>* stopped)
    : lists_(points, BoundingBox::Around(points)) {
  const FloatMatrix scaled = lists_.Scaled();
  const FloatMatrix centroids = KMeans(scaled, ListsFor(points.rows()), kRoughKMeans);
  const std::vector<int64_t> list_of_row = NearestCentroids(scaled, centroids, stopped);
  if (stopped != nullptr && *stopped) return;
  centroids_ = centroids;
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(centroids.rows()));
  for (size_t row = 0; row < list_of_row.size(); ++row) {
    rows[static_cast<size_t>(list_of_row[row])].push_back(static_cast<int64_t>(row));
  }
  for (std::vector<int64_t>& list : rows) lists_.AddGroup(std::move(list));
}

std::vector<int64_t> InvertedLists::Nearest(const RowVector& scaled, int64_t count) const {
  Eigen::ArrayXf distances;
  SquaredDistances(scaled.transpose().cast<float>(), centroids_, &distances);
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
  ScreenedPoints::Query prepared = lists_.Prepare(query);
  TopK nearest(count, skipped);
  for (const int64_t list : Nearest(prepared.scaled, probed)) {
    lists_.Scan(list, &prepared, &nearest);
  }
  return nearest.Sorted();
}

std::unique_ptr<const ApproximateIndex> ApproximateIndex::Make(const ExactIndex& exact,
                                                               double recall,
                                                               const std::atomic<bool>* stopped) {
  if (!ScreenedPoints::CanScreen(BoundingBox::Around(exact.points()))) return nullptr;
  auto index = std::unique_ptr<ApproximateIndex>(new ApproximateIndex(exact, stopped));
  if (IsSet(stopped) || !index->ChooseProbed(recall, stopped)) return nullptr;
  return index;
}

bool ApproximateIndex::ChooseProbed(double recall, const std::atomic<bool>* stopped) {
  const Matrix displaced = Displaced(), midpoints = Midpoints();
  const Results of_displaced = ExactResults(exact_, displaced, stopped);
  const Results of_midpoints = ExactResults(exact_, midpoints, stopped);
  for (int64_t probed = 1; probed <= lists_.size() / 4; probed = NextProbed(probed)) {
    if (IsSet(stopped)) return false;
    const double reached = std::min(RecallOf(displaced, of_displaced, probed),
                                    RecallOf(midpoints, of_midpoints, probed));
    if (!(reached >= recall)) continue;
    quality_ = {lists_.size(), probed, reached};
    return true;
  }
  return false;
}

double ApproximateIndex::RecallOf(const Matrix& queries, const Results& nearest,
                                  int64_t probed) const {
  int64_t found = 0, wanted = 0;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    const std::vector<Neighbor>& expected = nearest[static_cast<size_t>(q)];
    wanted += static_cast<int64_t>(expected.size());
    for (const Neighbor& neighbor :
         lists_.Search(queries.row(q), kRecallNeighbors, nullptr, probed)) {
      found += std::any_of(expected.begin(), expected.end(),
                           [&](const Neighbor& one) { return one.row == neighbor.row; });
    }
  }
  return static_cast<double>(found) / static_cast<double>(wanted);
}

Matrix ApproximateIndex::Displaced() const {
  const Matrix& points = exact_.points();
  std::mt19937_64 bits(1);
  Matrix queries(kQueriesOfEachKind, points.cols());
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    const int64_t row = Below(points.rows(), &bits);
    const std::vector<int64_t>& others = lists_.RowsAround(points.row(row));
    const auto other = [&] {
      return others.empty() ? row : others[static_cast<size_t>(Below(std::ssize(others), &bits))];
    };
    const int64_t one = other(), another = other();
    queries.row(q) = points.row(row) + .5 * (points.row(one) - points.row(another));
  }
  return queries;
}

Matrix ApproximateIndex::Midpoints() const {
  const Matrix& points = exact_.points();
  std::mt19937_64 bits(2);
  Matrix queries(kQueriesOfEachKind, points.cols());
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    const int64_t one = Below(points.rows(), &bits), another = Below(points.rows(), &bits);
    queries.row(q) = .5 * points.row(one) + .5 * points.row(another);
  }
  return queries;
}

Results ApproximateIndex::Search(const Matrix& queries, int64_t count,
                                 const std::vector<bool>* hidden) const {
  const int64_t looked_at = quality_.probed * (exact_.size() / quality_.lists);
  if (count > looked_at / kRowsPerResult) return exact_.Search(queries, count, hidden);
  Results nearest;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    nearest.push_back(lists_.Search(queries.row(q), count, hidden, quality_.probed));
    if (std::ssize(nearest.back()) == count) continue;
    nearest.back() = exact_.Search(queries.row(q), count, hidden).front();
  }
  return nearest;
}

}  // namespace privatemail

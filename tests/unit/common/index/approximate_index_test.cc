#include "common/index/approximate_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "common/index/search_index.h"

namespace privatemail {
namespace {

using ::testing::MatchesRegex;

constexpr int kRows = 12'000;
constexpr int kDim = 8;

// Forty clusters.
Matrix Clouds(Eigen::Index rows, unsigned seed) {
  std::mt19937 bits(1);
  std::normal_distribution<double> normal;
  const Matrix centres = Matrix::NullaryExpr(40, kDim, [&] { return normal(bits); });
  bits.seed(seed);
  Matrix points(rows, kDim);
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index c = 0; c < kDim; ++c) points(i, c) = centres(i % 40, c) + .1 * normal(bits);
  }
  return points;
}

Matrix Noise(Eigen::Index rows, Eigen::Index dim) {
  std::mt19937 bits(3);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, dim, [&] { return normal(bits); });
}

// The visible rows sorted by distance, then row, in extended precision.
std::vector<int64_t> Ranked(const Matrix& points, const RowVector& query,
                            const std::vector<bool>& hidden) {
  std::vector<std::pair<long double, int64_t>> ranked;
  for (Eigen::Index row = 0; row < points.rows(); ++row) {
    if (hidden[static_cast<size_t>(row)]) continue;
    long double distance = 0;
    for (Eigen::Index c = 0; c < points.cols(); ++c) {
      const long double difference = static_cast<long double>(points(row, c)) - query(c);
      distance += difference * difference;
    }
    ranked.emplace_back(distance, row);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<int64_t> rows;
  for (const auto& [distance, row] : ranked) rows.push_back(row);
  return rows;
}

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors) {
  std::vector<int64_t> rows;
  for (const Neighbor& neighbor : neighbors) rows.push_back(neighbor.row);
  return rows;
}

void ExpectSame(const std::vector<Neighbor>& a, const std::vector<Neighbor>& b) {
  ASSERT_EQ(RowsOf(a), RowsOf(b));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].squared_distance, b[i].squared_distance);
}

int64_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(InvertedLists, ProbingAllListsMatchesExactScan) {
  Matrix far = 1e-3 * Noise(2000, 6);
  far.array() += 1e6;
  Matrix lattice = Noise(2000, 5);
  lattice = lattice.array().round();
  Matrix outlier = Noise(2000, 5);
  outlier.row(7) *= 1e9;  // floats at its scale cannot distinguish the other rows
  for (const Matrix& points : {Noise(2000, 16), far, lattice, outlier, Matrix(1e200 * far)}) {
    ASSERT_TRUE(ScreenedPoints::CanScreen(BoundingBox::Around(points)));
    const InvertedLists lists(points);
    std::vector<bool> hidden(static_cast<size_t>(points.rows()));
    for (size_t row = 0; row < hidden.size(); row += 3) hidden[row] = true;
    for (Eigen::Index q = 0; q < 30; ++q) {
      const RowVector query = points.row(q) + .25 * (q % 3) * (points.row(q + 1) - points.row(q));
      for (const int64_t count : {1, 8, 100}) {
        ExpectSame(lists.Search(query, count, &hidden, lists.size()),
                   NearestRows(query, points, count, &hidden).front());
      }
    }
  }
}

TEST(ScreenedPoints, CannotScreenCoincidentDenormalOrHugePoints) {
  const auto can_screen = [](const Matrix& points) {
    return ScreenedPoints::CanScreen(BoundingBox::Around(points));
  };
  Matrix points = Noise(100, 5);
  EXPECT_TRUE(can_screen(points));
  EXPECT_FALSE(can_screen(Matrix::Ones(100, 5)));
  EXPECT_FALSE(can_screen(1e-310 * points));
  EXPECT_FALSE(can_screen(Matrix(0, 5)));
}

TEST(ApproximateIndex, ReachesRecallOnUnseenQueries) {
  const Matrix points = Clouds(kRows, 1);
  const ExactIndex exact(points);
  const std::vector<bool> none(kRows);
  for (const double recall : {.8, .99}) {
    const auto index = ApproximateIndex::Make(exact, recall);
    ASSERT_NE(index, nullptr);
    EXPECT_GE(index->quality().recall, recall);
    EXPECT_LT(index->quality().probed, index->quality().lists / 4);
    int found = 0;
    const Matrix queries = Clouds(200, 2);
    for (Eigen::Index q = 0; q < queries.rows(); ++q) {
      std::vector<int64_t> expected = Ranked(points, queries.row(q), none);
      expected.resize(8);
      const std::vector<int64_t> rows = RowsOf(index->Search(queries.row(q), 8).front());
      EXPECT_EQ(rows.size(), 8u);
      for (const int64_t row : rows) found += std::count(expected.begin(), expected.end(), row);
    }
    // Other queries than those of the measurement: five standard errors of 1,600 rows.
    EXPECT_GE(found / 1600., recall - 5 * std::sqrt(recall * (1 - recall) / 1600));
  }
}

TEST(ApproximateIndex, HigherRecallProbesMoreLists) {
  const ExactIndex exact(Clouds(kRows, 1));
  EXPECT_LT(ApproximateIndex::Make(exact, .8)->quality().probed,
            ApproximateIndex::Make(exact, .999)->quality().probed);
}

TEST(ApproximateIndex, ReturnsMinOfCountAndVisibleRows) {
  const Matrix points = Clouds(kRows, 1);
  const ExactIndex exact(points);
  const auto index = ApproximateIndex::Make(exact, .99);
  const RowVector query = points.row(0);
  const std::vector<bool> none(kRows);
  EXPECT_EQ(RowsOf(index->Search(query, 20'000).front()), Ranked(points, query, none));
  std::vector<bool> hidden(kRows, true);
  for (const size_t row : {3u, 44u, 45u, 11'999u}) hidden[row] = false;
  EXPECT_EQ(RowsOf(index->Search(query, 8, &hidden).front()), Ranked(points, query, hidden));
  EXPECT_THAT(index->Search(query, 0).front(), ::testing::IsEmpty());
}

TEST(ApproximateIndex, EqualPointsGiveEqualIndexes) {
  const Matrix points = Clouds(kRows, 1);
  const ExactIndex exact(points), again(points);
  const auto one = ApproximateIndex::Make(exact, .9), other = ApproximateIndex::Make(again, .9);
  EXPECT_EQ(one->quality().probed, other->quality().probed);
  EXPECT_EQ(one->quality().recall, other->quality().recall);
  const Matrix queries = Clouds(100, 2);
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    ExpectSame(one->Search(queries.row(q), 8).front(), other->Search(queries.row(q), 8).front());
  }
}

TEST(ApproximateIndex, UnreachableRecallReturnsNull) {
  // Without clusters the nearest of so few rows in so many columns are in all lists.
  EXPECT_EQ(ApproximateIndex::Make(ExactIndex(Noise(4000, 32)), .99), nullptr);
  EXPECT_EQ(ApproximateIndex::Make(ExactIndex(Matrix::Ones(4000, 5)), .5), nullptr);
}

TEST(InvertedLists, StartNoOpenMpThreads) {
  const Matrix points = Clouds(kRows, 1);
  const int64_t before = Threads();
  const InvertedLists lists(points);
  EXPECT_EQ(lists.Search(points.row(0), 8, nullptr, 8).size(), 8u);
  EXPECT_EQ(Threads(), before);
}

TEST(ApproximateIndex, StoppedBuildReturnsNull) {
  const std::atomic<bool> stopped = true;
  EXPECT_EQ(ApproximateIndex::Make(ExactIndex(Clouds(kRows, 1)), .5, &stopped), nullptr);
}

std::string FinalDescription(const Matrix& points, const IndexOptions& options) {
  const SearchIndex index(points, options);
  index.BuildApproximateIndex();
  return index.description();
}

TEST(SearchIndex, ApproximateOnlyIfEnabledAndUseful) {
  const IndexOptions ivf = {true, .99};
  const Matrix clouds = Clouds(kRows, 1);
  EXPECT_EQ(FinalDescription(clouds, {}), "exact, k-d tree");
  EXPECT_EQ(FinalDescription(clouds.leftCols(4), ivf), "exact, R-tree");
  EXPECT_EQ(FinalDescription(clouds.topRows(9'999), ivf), "exact, k-d tree");
  EXPECT_THAT(
      FinalDescription(clouds, ivf),
      MatchesRegex("IVF of 219 lists, [0-9]+ probed, recall@8 (0.99.|1.000) on 400 queries"));
  EXPECT_EQ(FinalDescription(Noise(10'000, 32), ivf),
            "exact, k-d tree; IVF would not reach recall@8 0.99");
  EXPECT_TRUE(SearchIndex(clouds.leftCols(4), ivf).IsFast());
  EXPECT_FALSE(SearchIndex(clouds, ivf).IsFast());
}

TEST(SearchIndex, SearchesDuringBuildAreAnswered) {
  const Matrix clouds = Clouds(kRows, 1);
  const SearchIndex index(clouds, {true, .5});
  EXPECT_EQ(index.description(), "exact, k-d tree; IVF is being built");
  const RowVector between = (clouds.row(0) + clouds.row(1)) / 2;
  std::vector<int64_t> nearest = Ranked(clouds, between, std::vector<bool>(kRows));
  nearest.resize(8);
  EXPECT_EQ(RowsOf(index.Search(between, 8).front()), nearest);
  std::atomic<bool> built = false;
  std::thread searcher([&] {
    while (!built) EXPECT_EQ(index.Search(between, 8).front().size(), 8u);
  });
  index.BuildApproximateIndex();
  built = true;
  searcher.join();
  const std::string description = index.description();
  EXPECT_THAT(description, ::testing::StartsWith("IVF of "));
  EXPECT_EQ(index.Search(between, 8).front().size(), 8u);
  // Searches may still use the first one.
  const std::atomic<bool> stopped = true;
  index.BuildApproximateIndex(&stopped);
  EXPECT_EQ(index.description(), description);
}

TEST(SearchIndex, StoppedBuildStaysExact) {
  const SearchIndex index(Clouds(kRows, 1), {true, .5});
  const std::atomic<bool> stopped = true;
  index.BuildApproximateIndex(&stopped);
  EXPECT_THAT(index.description(), ::testing::StartsWith("exact, k-d tree"));
}

}  // namespace
}  // namespace privatemail

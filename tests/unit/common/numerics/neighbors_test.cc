#include "common/numerics/neighbors.h"

#include <faiss/IndexFlat.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace privatemail {
namespace {

Matrix SmallIntegers(int n, int d, unsigned seed) {
  std::mt19937 bits(seed);
  std::uniform_int_distribution<int> draw(0, 3);
  return Matrix::NullaryExpr(n, d, [&] { return draw(bits); });
}

TEST(NearestRows, TiesAreOrderedByRow) {
  Matrix points(4, 1);
  points << 1, -1, 1, 0;
  const auto nearest = NearestRows(Matrix::Zero(1, 1), points, 3);
  ASSERT_EQ(nearest[0].size(), 3u);
  EXPECT_EQ(nearest[0][0].row, 3);
  EXPECT_EQ(nearest[0][1].row, 0);
  EXPECT_EQ(nearest[0][2].row, 1);
}

// Against the definition: every (distance, row) pair in order. Small integers make many ties.
TEST(NearestRows, MatchSortedListOfAllPairs) {
  const Matrix points = SmallIntegers(200, 3, 1);
  const Matrix queries = SmallIntegers(20, 3, 2);
  const auto nearest = NearestRows(queries, points, 17);
  for (int q = 0; q < queries.rows(); ++q) {
    std::set<std::pair<double, int64_t>> all;
    for (int i = 0; i < points.rows(); ++i) {
      double squared = 0;
      for (int c = 0; c < 3; ++c) squared += std::pow(points(i, c) - queries(q, c), 2);
      all.emplace(squared, i);
    }
    auto expected = all.begin();
    for (const Neighbor& neighbor : nearest[q]) {
      EXPECT_EQ(neighbor.squared_distance, expected->first);
      EXPECT_EQ(neighbor.row, expected->second);
      ++expected;
    }
  }
}

// FAISS works in single precision: it may swap neighbours whose distances agree to 1e-6.
TEST(NearestRows, AgreeWithFaiss) {
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  constexpr int kCount = 20;
  for (const int dim : {2, 3, 8, 64}) {
    std::mt19937 bits(static_cast<unsigned>(dim));
    std::normal_distribution<float> draw;
    const FloatRows points = FloatRows::NullaryExpr(3000, dim, [&] { return draw(bits); });
    const FloatRows queries = FloatRows::NullaryExpr(15, dim, [&] { return draw(bits); });
    faiss::IndexFlatL2 index(dim);
    index.add(points.rows(), points.data());
    std::vector<float> distances(15 * kCount);
    std::vector<faiss::Index::idx_t> rows(15 * kCount);
    index.search(15, queries.data(), kCount, distances.data(), rows.data());
    const auto nearest = NearestRows(queries.cast<double>(), points.cast<double>(), kCount);
    for (size_t q = 0; q < 15; ++q) {
      for (size_t rank = 0; rank < kCount; ++rank) {
        const size_t at = q * kCount + rank;
        const double tolerance = 1e-6 * distances[at];
        EXPECT_NEAR(nearest[q][rank].squared_distance, distances[at], tolerance);
        const double theirs = (points.row(rows[at]) - queries.row(static_cast<Eigen::Index>(q)))
                                  .cast<double>()
                                  .squaredNorm();
        if (nearest[q][rank].row != rows[at]) {
          EXPECT_NEAR(nearest[q][rank].squared_distance, theirs, tolerance);
        }
      }
    }
  }
}

TEST(NearestRows, SkippedRowsAreIgnored) {
  Matrix points(4, 1);
  points << 0, 1, 2, 3;
  const std::vector<bool> skipped = {true, false, false, true};
  const auto nearest = NearestRows(Matrix::Zero(1, 1), points, 9, &skipped)[0];
  ASSERT_EQ(nearest.size(), 2u);
  EXPECT_EQ(nearest[0].row, 1);
  EXPECT_EQ(nearest[1].row, 2);
}

TEST(NearestRows, CountAboveSizeReturnsAllRows) {
  EXPECT_EQ(NearestRows(Matrix::Zero(1, 2), SmallIntegers(5, 2, 3), 8)[0].size(), 5u);
}

}  // namespace
}  // namespace privatemail

#include "common/numerics/neighbors.h"

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

TEST(Neighbors, TiesAreBrokenByRow) {
  Matrix points(4, 1);
  points << 1, -1, 1, 0;
  const auto nearest = NearestRows(Matrix::Zero(1, 1), points, 3);
  ASSERT_EQ(nearest[0].size(), 3u);
  EXPECT_EQ(nearest[0][0].row, 3);
  EXPECT_EQ(nearest[0][1].row, 0);
  EXPECT_EQ(nearest[0][2].row, 1);
}

// Against the definition: every (distance, row) pair in order. Small integers make many ties.
TEST(Neighbors, EqualAnOrderedListOfAllPairs) {
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

TEST(Neighbors, MoreThanThereAreGivesAllThereAre) {
  EXPECT_EQ(NearestRows(Matrix::Zero(1, 2), SmallIntegers(5, 2, 3), 8)[0].size(), 5u);
}

}  // namespace
}  // namespace privatemail

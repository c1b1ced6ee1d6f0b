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

// The oracle sorts all (distance, row) pairs. Small integers make many ties and are exact.
void ExpectSortedPairs(int dim, int count, bool hides) {
  const Matrix points = SmallIntegers(200, dim, 1);
  const Matrix queries = SmallIntegers(20, dim, 2);
  std::vector<bool> skipped(200);
  for (size_t row = 0; row < skipped.size(); row += 3) skipped[row] = hides;
  const auto nearest = NearestRows(queries, points, count, &skipped);
  for (int q = 0; q < queries.rows(); ++q) {
    std::set<std::pair<double, int64_t>> all;
    for (int i = 0; i < points.rows(); ++i) {
      if (hides && i % 3 == 0) continue;
      double squared = 0;
      for (int c = 0; c < dim; ++c) squared += std::pow(points(i, c) - queries(q, c), 2);
      all.emplace(squared, i);
    }
    ASSERT_EQ(std::ssize(nearest[q]), count);
    auto expected = all.begin();
    for (const Neighbor& neighbor : nearest[q]) {
      EXPECT_EQ(neighbor.squared_distance, expected->first);
      EXPECT_EQ(neighbor.row, expected->second);
      ++expected;
    }
  }
}

TEST(NearestRows, MatchSortedListOfAllPairs) {
  for (const int dim : {1, 2, 3, 8, 64}) {
    for (const int count : {1, 2, 16, 17, 100}) {
      ExpectSortedPairs(dim, count, /*hides=*/false);
      ExpectSortedPairs(dim, count, /*hides=*/true);
    }
  }
}

TEST(NearestRows, CountAboveSizeReturnsAllRowsThatAreNotSkipped) {
  Matrix points(4, 1);
  points << 0, 1, 2, 3;
  const std::vector<bool> skipped = {true, false, false, true};
  EXPECT_EQ(NearestRows(Matrix::Zero(1, 1), points, 9, &skipped)[0].size(), 2u);
  EXPECT_EQ(NearestRows(Matrix::Zero(1, 1), points, 9)[0].size(), 4u);
}

}  // namespace
}  // namespace privatemail

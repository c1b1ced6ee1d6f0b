#include "server/index/exact_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace privatemail {
namespace {

TEST(ExactIndex, BreaksTiesByTheSmallerRowAndReturnsNoMoreThanThereAre) {
  Matrix points(5, 2);
  points << 1, 0, 0, 3, -1, 0, 0, 1, 0, 0;
  const ExactIndex index(points);
  const auto rows = [&](int64_t count) {
    std::vector<int64_t> found;
    for (const Neighbor& neighbor : index.Search(RowVector::Zero(2), count)) {
      found.push_back(neighbor.row);
    }
    return found;
  };
  EXPECT_THAT(rows(3), ::testing::ElementsAre(4, 0, 2));
  EXPECT_THAT(rows(50), ::testing::ElementsAre(4, 0, 2, 3, 1));
  EXPECT_EQ(index.Search(RowVector::Zero(2), 5).back().squared_distance, 9);
}

TEST(ExactIndex, APartOfItFindsThatPartUnderTheRowsOfTheWhole) {
  Matrix points(5, 1);
  points << 0, 1, 2, 3, 4;
  const ExactIndex index(points);
  const ExactIndex::Part part = index.Restrict({0, 2, 4});
  EXPECT_EQ(part.size(), 3);
  RowVector query(1);
  query << 3.2;
  const std::vector<Neighbor> nearest = part.Search(query, 2);
  ASSERT_EQ(nearest.size(), 2u);
  EXPECT_EQ(nearest[0].row, 4);
  EXPECT_EQ(nearest[1].row, 2);
  EXPECT_TRUE(index.Restrict({}).Search(query, 2).empty());
}

// Clouds on which a tree could go wrong: duplicates, ties on a lattice, a line, clusters, overflow.
std::vector<Matrix> Clouds(Eigen::Index dim) {
  std::mt19937 bits(static_cast<unsigned>(dim));
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> small(0, 3);
  const Matrix random = Matrix::NullaryExpr(3000, dim, [&] { return normal(bits); });
  std::vector<Matrix> clouds = {random, Matrix::NullaryExpr(3000, dim, [&] { return small(bits); }),
                                Matrix::Ones(500, dim), random.topRows(1), random.topRows(2)};
  clouds.push_back(random.col(0).replicate(1, dim));
  clouds.push_back(1e-3 * random);
  clouds.back().topRows(1500).array() += 1e6;
  clouds.push_back(1e200 * random);
  return clouds;
}

TEST(ExactIndex, FindsWhatAScanFindsBitForBitInAnyNumberOfDimensions) {
  for (const Eigen::Index dim : {1, 2, 3, 4, 5}) {
    for (const Matrix& points : Clouds(dim)) {
      const ExactIndex index(points);
      std::vector<bool> hidden(static_cast<size_t>(points.rows()));
      for (size_t row = 0; row < hidden.size(); row += 3) hidden[row] = true;
      for (Eigen::Index q = 0; q < std::min<Eigen::Index>(points.rows(), 40); ++q) {
        const RowVector query = points.row(q) + RowVector::Constant(dim, q % 2 == 0 ? 0 : .25);
        for (const int64_t count : {0, 1, 8, 100, 5000}) {
          for (const std::vector<bool>* skipped :
               {static_cast<std::vector<bool>*>(nullptr), &hidden}) {
            const auto expected = NearestRows(query, points, count, skipped).front();
            const auto found = index.Search(query, count, skipped);
            ASSERT_EQ(found.size(), expected.size());
            for (size_t i = 0; i < found.size(); ++i) {
              EXPECT_EQ(found[i].row, expected[i].row);
              EXPECT_EQ(found[i].squared_distance, expected[i].squared_distance);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace privatemail

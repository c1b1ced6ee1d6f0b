#include "server/index/exact_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace privatemail

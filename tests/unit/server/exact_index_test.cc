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

}  // namespace
}  // namespace privatemail

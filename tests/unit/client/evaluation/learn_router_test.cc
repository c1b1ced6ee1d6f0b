#include "client/evaluation/learn_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

// 40 items on a line in four groups of ten, at 0, 100, 200 and 300; queries are the items, which
// want the nine others of their group.
struct Groups {
  Matrix items{40, 1};
  std::vector<std::vector<int64_t>> nearest;

  Groups() {
    for (int row = 0; row < 40; ++row) items(row, 0) = 100. * (row % 4) + .1 * row;
    for (const std::vector<Neighbor>& found : NearestRows(items, items, 10)) {
      std::vector<int64_t>& rows = nearest.emplace_back();
      for (size_t rank = 1; rank < found.size(); ++rank) rows.push_back(found[rank].row);
    }
  }

  // Centroids to begin with that cut the second group in halves.
  LearntCells Learn(int64_t length) const {
    Matrix centroids(2, 1);
    centroids << 2, 202;
    ItemCells lie;
    for (const std::vector<Neighbor>& found : NearestRows(items, centroids, 1)) {
      lie.cells.push_back(found[0].row);
      lie.squared_distances.push_back(static_cast<float>(found[0].squared_distance));
    }
    return LearnRouter(items, nearest, lie, centroids, items.cast<float>(), 8, length);
  }

  // What queries find on average in the list of the cell that the router sends them to.
  double Found(const LearntCells& learnt) const {
    double found = 0;
    for (size_t query = 0; query < nearest.size(); ++query) {
      const RowVector at = items.row(static_cast<Eigen::Index>(query));
      const auto& list = learnt.lists[static_cast<size_t>(RankedCells(learnt.router, at).front())];
      for (const int64_t row : nearest[query]) {
        found += static_cast<double>(std::count(list.begin(), list.end(), row));
      }
    }
    return found / (9. * 40);
  }
};

TEST(LearnRouter, ListsHaveTheirLengthAndEachItemOnce) {
  const LearntCells learnt = Groups().Learn(20);
  ASSERT_EQ(learnt.lists.size(), 2u);
  for (std::vector<int64_t> list : learnt.lists) {
    ASSERT_EQ(list.size(), 20u);
    std::sort(list.begin(), list.end());
    EXPECT_EQ(std::unique(list.begin(), list.end()), list.end());
  }
}

// Two lists of half the items have room for all groups. With the cells that it begins with, half
// the queries of one group would ask for the list that has hardly any of it.
TEST(LearnRouter, SendsQueriesWhereTheirNeighboursAre) {
  const Groups groups;
  EXPECT_GT(groups.Found(groups.Learn(20)), .95);
}

TEST(LearnRouter, IsDeterministic) {
  const LearntCells one = Groups().Learn(15), other = Groups().Learn(15);
  EXPECT_EQ(one.lists, other.lists);
  EXPECT_EQ(one.router.answered, other.router.answered);
}

}  // namespace
}  // namespace privatemail::client

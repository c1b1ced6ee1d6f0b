#include "client/evaluation/cell_filling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace privatemail::client {
namespace {

using testing::ElementsAre;

Matrix Column(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), std::ssize(values));
}

TEST(FileUnderNearest, PutsEachItemInItsNearestCellsTheNearestFirst) {
  const Matrix centroids = Column({0, 10, 20});
  const Matrix items = Column({3, 12, 1, 19});
  EXPECT_THAT(FileUnderNearest(items, centroids, 1),
              ElementsAre(ElementsAre(2, 0), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(FileUnderNearest(items, centroids, 2),
              ElementsAre(ElementsAre(2, 0), ElementsAre(1, 0, 2, 3), ElementsAre(3, 1)));
}

TEST(WantedBy, CountsAQueryForEachCellThatItIsDrawnTo) {
  const KnownQueries wanted = WantedBy(Column({1, 19}), {{5, 6}, {7}}, Column({0, 10, 20}), 2);
  EXPECT_THAT(wanted.cells, ElementsAre(0, 1, 2, 1));
  EXPECT_THAT(wanted.nearest,
              ElementsAre(ElementsAre(5, 6), ElementsAre(5, 6), ElementsAre(7), ElementsAre(7)));
}

TEST(CellsWithin, AreThoseThatFillTheShare) {
  EXPECT_EQ(CellsWithin(.1, 100, 1), 10);
  EXPECT_EQ(CellsWithin(.1, 9, 1), 0);
  EXPECT_EQ(CellsWithin(.5, 4, 1), 2);
  // Of 5 cells one is asked for: an item of 2 cells comes back with 2 / 5; of two asked for, with
  // 1 - (3 / 5) (2 / 4) = .7.
  EXPECT_EQ(CellsWithin(.4, 5, 2), 1);
  EXPECT_EQ(CellsWithin(.69, 5, 2), 1);
  EXPECT_EQ(CellsWithin(.7, 5, 2), 2);
  EXPECT_EQ(CellsWithin(1, 5, 5), 4) << "all but one at most";
}

TEST(MergedContents, TakesFromAllCellsByTurnsAndNothingTwice) {
  const CellContents contents = {{1, 2, 3, 4}, {9}, {2, 5}};
  EXPECT_THAT(MergedContents(contents, {0, 2}, 10), ElementsAre(1, 2, 5, 3, 4));
  EXPECT_THAT(MergedContents(contents, {0, 2}, 3), ElementsAre(1, 2, 5));
  EXPECT_THAT(MergedContents(contents, {1}, 3), ElementsAre(9));
  EXPECT_THAT(MergedContents(contents, {1}, 0), ElementsAre());
}

}  // namespace
}  // namespace privatemail::client

#include "common/cells/cell_lists.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <vector>

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

double Weight(int rank, int of) {
  double sum = 0;
  for (int i = 0; i < of; ++i) sum += std::exp(-i / 20.);
  return std::exp(-rank / 20.) / sum;
}

// Two queries of cell 0, one of cell 1; items 3 and 4 are never neighbours.
Demand ThreeQueries() {
  return Demand({.nearest = {{0, 1}, {1, 0}, {1, 2}}, .cells = {0, 0, 1}}, 2, 5);
}

std::vector<float> ValuesOf(const Eigen::RowVectorXf& row) {
  return {row.data(), row.data() + row.size()};
}

TEST(Demand, QuerySpreadsOverItsNeighbours) {
  const Demand demand = ThreeQueries();
  ASSERT_EQ(demand.cells(), 2);
  const auto first = static_cast<float>(Weight(0, 2)), second = static_cast<float>(Weight(1, 2));
  EXPECT_NEAR(first + second, 1, 1e-6);
  EXPECT_THAT(ValuesOf(demand.ForCell(0, 0)),
              ElementsAre(FloatNear(1, 1e-6), FloatNear(1, 1e-6), 0, 0, 0));
  EXPECT_THAT(ValuesOf(demand.ForCell(1, 0)),
              ElementsAre(0, FloatNear(first, 1e-6), FloatNear(second, 1e-6), 0, 0));
  EXPECT_THAT(ValuesOf(demand.ForCell(1, .5)),
              ElementsAre(FloatNear(.5F, 1e-6), FloatNear(first + .5F, 1e-6),
                          FloatNear(second, 1e-6), 0, 0));
  EXPECT_NEAR(demand.ForCell(0, 1).sum(), 3, 1e-6);
}

TEST(CellLists, SmallEpsilonPrefersOverallDemand) {
  const ItemCells item_cells{.cells = {0, 0, 0, 1, 1}, .squared_distances = {0, 0, 0, 16, 1}};
  // Cell 1 prefers item 1 to 2; items 3 and 4 have no demand, and 4 is nearer to the centroid.
  EXPECT_THAT(CellLists(ThreeQueries(), item_cells, 20, 5)[1], ElementsAre(1, 2, 0, 4, 3));
  EXPECT_THAT(CellLists(ThreeQueries(), item_cells, 20, 2)[0], ElementsAre(0, 1));
  // In cell 1, item 0 has a demand of e^-epsilon, item 2 of .49.
  EXPECT_THAT(CellLists(ThreeQueries(), item_cells, .1, 3)[1], ElementsAre(1, 0, 2));
  EXPECT_THAT(CellLists(ThreeQueries(), item_cells, .1, 1)[0], ElementsAre(1));
}

TEST(QuantiseEpsilon, RoundsToFewLevels) {
  EXPECT_DOUBLE_EQ(QuantiseEpsilon(1), 1);
  EXPECT_DOUBLE_EQ(QuantiseEpsilon(4), 4);
  std::map<double, int> levels;
  for (double epsilon = 1e-9; epsilon < 1e9; epsilon *= 1.01) {
    const double listed = QuantiseEpsilon(epsilon);
    ++levels[listed];
    if (epsilon > 1. / 16 && epsilon < 32) {
      EXPECT_LE(std::abs(std::log2(listed / epsilon)), .2501);
    }
  }
  EXPECT_EQ(levels.size(), 19U);
}

}  // namespace
}  // namespace privatemail

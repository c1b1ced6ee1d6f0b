#include "common/cells/cell_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "common/cells/demand.h"

namespace privatemail {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

double Weight(int rank, int of) {
  double sum = 0;
  for (int i = 0; i < of; ++i) sum += std::exp(-i / 20.);
  return std::exp(-rank / 20.) / sum;
}

// Two queries of cell 0, one of cell 1; item 3 is nobody's neighbour.
Demand ThreeQueries() {
  return Demand({.nearest = {{0, 1}, {1, 0}, {1, 2}}, .cells = {0, 0, 1}}, 2, 5);
}

std::vector<float> ValuesOf(const Eigen::RowVectorXf& row) {
  return {row.data(), row.data() + row.size()};
}

TEST(Demand, SpreadsEachQueryOverItsNeighbours) {
  const Demand demand = ThreeQueries();
  ASSERT_EQ(demand.cells(), 2);
  ASSERT_EQ(demand.items(), 5);
  const auto first = static_cast<float>(Weight(0, 2)), second = static_cast<float>(Weight(1, 2));
  EXPECT_NEAR(first + second, 1, 1e-6);
  EXPECT_THAT(ValuesOf(demand.Around(0, 0)),
              ElementsAre(FloatNear(1, 1e-6), FloatNear(1, 1e-6), 0, 0, 0));
  EXPECT_THAT(ValuesOf(demand.Around(1, 0)),
              ElementsAre(0, FloatNear(first, 1e-6), FloatNear(second, 1e-6), 0, 0));
  EXPECT_THAT(ValuesOf(demand.Around(1, .5)),
              ElementsAre(FloatNear(.5F, 1e-6), FloatNear(first + .5F, 1e-6),
                          FloatNear(second, 1e-6), 0, 0));
  EXPECT_NEAR(demand.total().sum(), 3, 1e-6);
}

TEST(Demand, FallsWithTheRankAsSlowlyAsItIsTold) {
  const std::vector<float> weights = Demand::Weights(3, 2);
  ASSERT_EQ(weights.size(), 3U);
  EXPECT_NEAR(weights[1] / weights[0], std::exp(-.5), 1e-6);
  EXPECT_NEAR(weights[2] / weights[1], std::exp(-.5), 1e-6);
  const Demand demand({.nearest = {{0, 1, 2}}, .cells = {0}}, 1, 3, 2);
  EXPECT_THAT(ValuesOf(demand.total()),
              ElementsAre(FloatNear(weights[0], 1e-6), FloatNear(weights[1], 1e-6),
                          FloatNear(weights[2], 1e-6)));
}

TEST(CellLists, AreWhatTheCellWantsAndFirstWhatEverybodyWantsAtSmallEpsilon) {
  const ItemCells lie{.cells = {0, 0, 0, 1, 1}, .squared_distances = {0, 0, 0, 16, 1}};
  // Cell 1 wants 1 before 2; items 3 and 4 are wanted by nobody, 4 is nearer to it.
  EXPECT_THAT(CellLists(ThreeQueries(), lie, 20, 5)[1], ElementsAre(1, 2, 0, 4, 3));
  EXPECT_THAT(CellLists(ThreeQueries(), lie, 20, 2)[0], ElementsAre(0, 1));
  // To cell 1 item 0 matters with e^-epsilon alone: 1 of it is more than .49 of item 2.
  EXPECT_THAT(CellLists(ThreeQueries(), lie, .1, 3)[1], ElementsAre(1, 0, 2));
  EXPECT_THAT(CellLists(ThreeQueries(), lie, .1, 1)[0], ElementsAre(1));
}

TEST(CellLists, AreMadeForAFewEpsilons) {
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

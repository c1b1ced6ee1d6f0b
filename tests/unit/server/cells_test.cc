#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/cells/cell_lists.h"
#include "common/cells/demand.h"
#include "server/cells/find_item_cells.h"
#include "server/index/k_means.h"

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

TEST(CellLists, AreWhatTheCellWantsAndFirstWhatEverybodyWantsAtSmallEpsilon) {
  const FloatMatrix gallery = (FloatMatrix(5, 1) << 0, 0, 0, 6, 9).finished();
  const ItemCells lie = FindItemCells(gallery, (FloatMatrix(2, 1) << 0, 10).finished());
  EXPECT_THAT(lie.cells, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(lie.squared_distances, ElementsAre(0, 0, 0, 16, 1));
  // Cell 1 wants 1 before 2; items 3 and 4 are wanted by nobody, 4 is nearer to it.
  EXPECT_THAT(CellLists(ThreeQueries(), lie, 20, 5)[1], ElementsAre(1, 2, 0, 4, 3));
  EXPECT_THAT(CellLists(ThreeQueries(), lie, 20, 2)[0], ElementsAre(0, 1));
  // To cell 1 item 0 matters with e^-epsilon alone: 1 of it is more than .49 of item 2.
  EXPECT_THAT(CellLists(ThreeQueries(), lie, .1, 3)[1], ElementsAre(1, 0, 2));
  EXPECT_THAT(CellLists(ThreeQueries(), lie, .1, 1)[0], ElementsAre(1));
}

TEST(KMeans, FindsTheCentresOfCloudsAndWhoBelongsToThem) {
  FloatMatrix points(400, 2);
  for (Eigen::Index i = 0; i < 400; ++i) {
    const auto angle = static_cast<float>(i) * .1F;
    points.row(i) << static_cast<float>(10 * (i % 4)) + .1F * std::cos(angle),
        .1F * std::sin(angle);
  }
  const FloatMatrix centroids = KMeans(points, 4, {});
  ASSERT_EQ(centroids.rows(), 4);
  const std::vector<int64_t> nearest = NearestCentroids(points, centroids);
  for (Eigen::Index i = 0; i < 400; ++i) {
    EXPECT_EQ(nearest[static_cast<size_t>(i)], nearest[static_cast<size_t>(i % 4)]);
    EXPECT_NEAR(centroids(nearest[static_cast<size_t>(i)], 0), 10 * (i % 4), .05);
  }
  EXPECT_EQ(KMeans(points, 4, {}), centroids);
}

}  // namespace
}  // namespace privatemail

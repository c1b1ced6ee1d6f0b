#include "common/index/k_means.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace privatemail {
namespace {

using ::testing::ElementsAre;

TEST(FindItemCells, AssignsNearestCentroids) {
  const FloatMatrix gallery = (FloatMatrix(5, 1) << 0, 0, 0, 6, 9).finished();
  const ItemCells found = FindItemCells(gallery, (FloatMatrix(2, 1) << 0, 10).finished());
  EXPECT_THAT(found.cells, ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(found.squared_distances, ElementsAre(0, 0, 0, 16, 1));
}

TEST(KMeans, FindsClustersAndAssignments) {
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

// FAISS samples more than points_per_centroid points itself.
TEST(KMeans, SampleGivesTheSameCentroids) {
  const FloatMatrix points = FloatMatrix::Random(3000, 4);
  constexpr KMeansEffort kFew = {.iterations = 5, .points_per_centroid = 20};
  const std::vector<Eigen::Index> sample = KMeansSample(3000, 7, kFew);
  EXPECT_EQ(sample.size(), 140u);
  EXPECT_EQ(KMeans(points(sample, Eigen::all), 7, kFew), KMeans(points, 7, kFew));
  EXPECT_EQ(KMeansSample(140, 7, kFew).back(), 139) << "all";
}

}  // namespace
}  // namespace privatemail

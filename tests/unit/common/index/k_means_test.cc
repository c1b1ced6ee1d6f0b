#include "common/index/k_means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/numerics/neighbors.h"

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

using Rows = std::vector<Eigen::Index>;

constexpr int kColumns = 6;

// Items of twenty overlapping clusters.
FloatMatrix MakeGroups(int64_t items) {
  std::mt19937 bits(7);
  std::normal_distribution<float> normal;
  FloatMatrix centres(20, kColumns);
  for (float& value : centres.reshaped()) value = normal(bits);
  FloatMatrix rows(items, kColumns);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    rows.row(i) = centres.row(static_cast<Eigen::Index>(bits() % 20));
    for (float& value : rows.row(i)) value += .5F * normal(bits);
  }
  return rows;
}

Rows EvenlySpaced(int64_t items, int64_t count) {
  Rows rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(i * items / count);
  return rows;
}

// Recall against a scan, over a sample of the queries.
double Recall(const FloatMatrix& items, const Rows& queries,
              const std::vector<std::vector<int64_t>>& nearest, int64_t count) {
  const Matrix all = items.cast<double>();
  double found = 0, wanted = 0;
  for (size_t query = 0; query < queries.size(); query += queries.size() / 50) {
    std::vector<int64_t> rows = nearest[query];
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end()) << "each once";
    const auto scan = NearestRows(Matrix(all.row(queries[query])), all, count + 1).front();
    for (const Neighbor& one : scan) {
      if (one.row == queries[query]) continue;
      found += std::binary_search(rows.begin(), rows.end(), one.row) ? 1 : 0;
      wanted += 1;
    }
  }
  return found / wanted;
}

TEST(NearestOthers, SmallGalleryMatchesScan) {
  const FloatMatrix items = MakeGroups(300);
  const Rows queries = {0, 17, 299};
  const auto nearest = NearestOthers(items, queries, 5, {false});
  for (size_t query = 0; query < queries.size(); ++query) {
    const Matrix all = items.cast<double>();
    const auto scan = NearestRows(Matrix(all.row(queries[query])), all, 6).front();
    std::vector<int64_t> expected;
    for (const Neighbor& one : scan) {
      if (one.row != queries[query]) expected.push_back(one.row);
    }
    EXPECT_EQ(nearest[query], expected);
  }
}

TEST(NearestOthers, CountAboveSizeReturnsAllOthers) {
  const auto nearest = NearestOthers(MakeGroups(3), {0, 2}, 64, {false});
  ASSERT_EQ(nearest[1].size(), 2u);
  EXPECT_EQ(std::count(nearest[1].begin(), nearest[1].end(), 2), 0) << "not itself";
  EXPECT_TRUE(NearestOthers(MakeGroups(1), {0}, 64, {false})[0].empty());
  EXPECT_TRUE(NearestOthers(FloatMatrix(0, kColumns), {}, 64, {false}).empty());
}

TEST(NearestOthers, EqualItemsExcludeTheQuery) {
  const auto nearest = NearestOthers(FloatMatrix::Ones(100, kColumns), {3, 50}, 10, {false});
  for (const auto& rows : nearest) EXPECT_EQ(rows.size(), 10u);
  EXPECT_EQ(std::count(nearest[0].begin(), nearest[0].end(), 3), 0);
}

TEST(NearestOthers, LargeGalleryHasHighRecallAndIsDeterministic) {
  const FloatMatrix items = MakeGroups(kLargeGallery);
  const Rows queries = EvenlySpaced(kLargeGallery, kManyQueries);
  const auto nearest = NearestOthers(items, queries, 20, {false});
  EXPECT_GT(Recall(items, queries, nearest, 20), .97);
  for (size_t query = 0; query < queries.size(); query += 100) {
    const std::vector<int64_t>& rows = nearest[query];
    ASSERT_EQ(rows.size(), 20u);
    EXPECT_EQ(std::count(rows.begin(), rows.end(), queries[query]), 0) << "not itself";
    for (size_t i = 1; i < rows.size(); ++i) {
      const auto distance = [&](int64_t row) {
        return (items.row(row) - items.row(queries[query])).norm();
      };
      EXPECT_LE(distance(rows[i - 1]), distance(rows[i]) + 1e-3F);
    }
  }
  EXPECT_EQ(NearestOthers(items, queries, 20, {false}), nearest);
}

TEST(NearestOthers, StoppedSearchReturnsEmptyRows) {
  const FloatMatrix items = MakeGroups(kLargeGallery);
  for (const auto& rows : NearestOthers(items, EvenlySpaced(kLargeGallery, 5000), 20, {true})) {
    EXPECT_TRUE(rows.empty());
  }
}

}  // namespace
}  // namespace privatemail

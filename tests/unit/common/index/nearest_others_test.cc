#include "common/index/nearest_others.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/index/k_means.h"
#include "common/numerics/neighbors.h"

namespace privatemail {
namespace {

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

// From memory.
std::vector<std::vector<int64_t>> NearestOf(const FloatMatrix& items, const Rows& queries,
                                            int64_t count, bool stopped = false) {
  return NearestOthers(MatrixRows(items), queries, count, {stopped}).value();
}

// The rows that a scan in double finds.
std::vector<int64_t> Scan(const FloatMatrix& items, Eigen::Index query, int64_t count) {
  const Matrix all = items.cast<double>();
  std::vector<int64_t> rows;
  const auto found = NearestRows(Matrix(all.row(query)), all, count + 1);
  for (const Neighbor& one : found.front()) {
    if (one.row != query) rows.push_back(one.row);
  }
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
  const auto nearest = NearestOf(items, queries, 5);
  for (size_t query = 0; query < queries.size(); ++query) {
    EXPECT_EQ(nearest[query], Scan(items, queries[query], 5));
  }
}

TEST(NearestOthers, SeveralBlocksMatchScan) {
  constexpr Eigen::Index kWide = 1000;
  FloatMatrix items = FloatMatrix::Random(2 * RowsOfBlock(kWide) + 100, kWide);
  items.row(items.rows() - 1) = 1.01F * items.row(3);  // in the last block, near one in the first
  const Rows queries = {3, RowsOfBlock(kWide), items.rows() - 1};
  const auto nearest = NearestOf(items, queries, 4);
  EXPECT_EQ(nearest[0].front(), items.rows() - 1);
  for (size_t query = 0; query < queries.size(); ++query) {
    EXPECT_EQ(nearest[query], Scan(items, queries[query], 4));
  }
}

TEST(NearestOthers, CountAboveSizeReturnsAllOthers) {
  const auto nearest = NearestOf(MakeGroups(3), {0, 2}, 64);
  ASSERT_EQ(nearest[1].size(), 2u);
  EXPECT_EQ(std::count(nearest[1].begin(), nearest[1].end(), 2), 0) << "not itself";
  EXPECT_TRUE(NearestOf(MakeGroups(1), {0}, 64)[0].empty());
  EXPECT_TRUE(NearestOf(FloatMatrix(0, kColumns), {}, 64).empty());
}

TEST(NearestOthers, EqualItemsExcludeTheQuery) {
  const auto nearest = NearestOf(FloatMatrix::Ones(100, kColumns), {3, 50}, 10);
  for (const auto& rows : nearest) EXPECT_EQ(rows.size(), 10u);
  EXPECT_EQ(std::count(nearest[0].begin(), nearest[0].end(), 3), 0);
}

TEST(NearestOthers, LargeGalleryHasHighRecallAndIsDeterministic) {
  const FloatMatrix items = MakeGroups(kLargeGallery);
  const Rows queries = EvenlySpaced(kLargeGallery, kManyQueries);
  const auto nearest = NearestOf(items, queries, 20);
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
  EXPECT_EQ(NearestOf(items, queries, 20), nearest);
}

TEST(NearestOthers, StoppedSearchReturnsEmptyRows) {
  const FloatMatrix items = MakeGroups(kLargeGallery);
  for (const auto& rows : NearestOf(items, EvenlySpaced(kLargeGallery, 5000), 20, true)) {
    EXPECT_TRUE(rows.empty());
  }
}

// The lists of the groups around an item's own hold, nearly always, the nearest of all lists.
TEST(MakeItemLists, ManyListsAreNearlyAsNearAsByScan) {
  const FloatMatrix items = MakeGroups(100'000);
  constexpr int64_t kLists = kMaxFlatLists + 76;
  const ItemLists lists = MakeItemLists(MatrixRows(items), kLists, {false}).value();
  EXPECT_GE(lists.centroids.rows(), kLists - 40) << "rounded down in each group";
  EXPECT_LE(lists.centroids.rows(), kLists + 40);
  ASSERT_EQ(std::ssize(lists.list_of_item), items.rows());
  double found = 0, nearest = 0;
  int equal = 0;
  const Rows sample = EvenlySpaced(items.rows(), 2000);
  const auto scans = NearestRows(Matrix(items(sample, Eigen::all).cast<double>()),
                                 Matrix(lists.centroids.cast<double>()), 1);
  for (size_t i = 0; i < sample.size(); ++i) {
    const int64_t list = lists.list_of_item[static_cast<size_t>(sample[i])];
    ASSERT_LT(list, lists.centroids.rows());
    const int64_t scan = scans[i].front().row;
    found += (items.row(sample[i]) - lists.centroids.row(list)).norm();
    nearest += (items.row(sample[i]) - lists.centroids.row(scan)).norm();
    equal += list == scan ? 1 : 0;
  }
  EXPECT_GT(equal, 1800);
  EXPECT_LT(found, 1.01 * nearest);
}

}  // namespace
}  // namespace privatemail

#include "common/index/nearest_others.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

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

std::vector<std::vector<int64_t>> NearestOf(const FloatMatrix& items, const Rows& queries,
                                            int64_t count) {
  return NearestOthers(MatrixRows(items), queries, count, {false}).value();
}

std::vector<int64_t> Scan(const FloatMatrix& items, Eigen::Index query, int64_t count) {
  const Matrix all = items.cast<double>();
  std::vector<int64_t> rows;
  const auto found = NearestRows(Matrix(all.row(query)), all, count + 1);
  for (const Neighbor& one : found.front()) {
    if (one.row != query) rows.push_back(one.row);
  }
  return rows;
}

double Recall(const FloatMatrix& items, const Rows& queries,
              const std::vector<std::vector<int64_t>>& nearest, int64_t count) {
  double found = 0, wanted = 0;
  for (size_t query = 0; query < queries.size(); query += queries.size() / 50) {
    std::vector<int64_t> rows = nearest[query];
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end()) << "each once";
    for (const int64_t row : Scan(items, queries[query], count)) {
      found += std::binary_search(rows.begin(), rows.end(), row) ? 1 : 0;
      wanted += 1;
    }
  }
  return found / wanted;
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

// Counts reads and sets `stopped` at the last one allowed.
class CountedRows : public MatrixRows {
 public:
  struct Record {
    int64_t reads = 0;
    int64_t reads_until_stop = INT64_MAX;
    std::atomic<bool> stopped = false;
  };

  CountedRows(FloatMatrix matrix, Record* record)
      : MatrixRows(std::move(matrix)), record_(*record) {}

  absl::Status Read(Eigen::Index first, FloatRows block) const override {
    if (++record_.reads >= record_.reads_until_stop) record_.stopped = true;
    return MatrixRows::Read(first, block);
  }

 private:
  Record& record_;
};

TEST(NearestOthers, StoppedSearchReadsNoMore) {
  constexpr Eigen::Index kWide = 1000;
  const FloatMatrix blocks = FloatMatrix::Random(2 * RowsOfBlock(kWide) + 1, kWide);
  CountedRows::Record exact{.reads_until_stop = 3};  // two queries and a block
  EXPECT_TRUE(absl::IsCancelled(
      NearestOthers(CountedRows(blocks, &exact), {0, 1}, 5, exact.stopped).status()));
  EXPECT_EQ(exact.reads, 3);

  const FloatMatrix items = MakeGroups(kLargeGallery);
  const Rows queries = EvenlySpaced(kLargeGallery, kManyQueries);
  CountedRows::Record all;
  ASSERT_TRUE(NearestOthers(CountedRows(items, &all), queries, 5, all.stopped).ok());
  // In the queries, in the sample, and in the block.
  for (const int64_t reads : {int64_t{1}, int64_t{5000}, all.reads}) {
    CountedRows::Record some{.reads_until_stop = reads};
    EXPECT_TRUE(absl::IsCancelled(
        NearestOthers(CountedRows(items, &some), queries, 5, some.stopped).status()));
    EXPECT_EQ(some.reads, reads);
  }
}

// Most items equal one of three, or are so near to it that single precision does not tell them
// apart. The others are as in a gallery without them.
TEST(NearestOthers, ManyNearlyEqualItemsHideNoOthers) {
  constexpr int64_t kItems = 2 * kLargeGallery, kCount = 20;
  const FloatMatrix groups = MakeGroups(kItems);
  const Rows queries = EvenlySpaced(kItems, kManyQueries);
  for (const float noise : {0.F, 3e-7F}) {
    FloatMatrix items = groups;
    const FloatMatrix differences = noise * FloatMatrix::Random(kItems, kColumns);
    for (Eigen::Index row = 1; row < kItems; ++row) {
      if (row % 16 >= 13) continue;
      items.row(row) = items.row(0) + differences.row(row);
      items(row, 0) += row % 16 < 8 ? 0 : .1F * static_cast<float>(1 + row % 2);
    }
    const auto nearest = NearestOf(items, queries, kCount);
    double found = 0, wanted = 0;
    for (size_t query = 0; query < queries.size(); query += 41) {
      const auto distance = [&](int64_t row) {
        return (items.row(row) - items.row(queries[query])).cast<double>().norm();
      };
      std::vector<int64_t> rows = nearest[query];
      ASSERT_EQ(std::ssize(rows), kCount);
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end()) << "each once";
      EXPECT_FALSE(std::binary_search(rows.begin(), rows.end(), queries[query]));
      const double farthest = distance(Scan(items, queries[query], kCount).back());
      for (const int64_t row : rows) found += distance(row) <= farthest + 1e-4 ? 1 : 0;
      wanted += kCount;
    }
    EXPECT_GT(found / wanted, .97) << noise;
  }
}

}  // namespace
}  // namespace privatemail

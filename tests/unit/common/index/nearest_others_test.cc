#include "common/index/nearest_others.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "common/index/item_lists.h"
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
                                            int64_t count) {
  return NearestOthers(MatrixRows(items), queries, count, {false}).value();
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

// Counts blocks, sets `stopped` at the last one allowed, and records what is read of an order.
class RecordedRows : public MatrixRows {
 public:
  struct Record {
    Eigen::Index reordered = 0;     // rows in another order
    Eigen::Index most_at_once = 0;  // of them, read into memory without a gap
    int64_t sum = 0;                // of them, in all
    int64_t reads = 0;              // in the original order
    int64_t reads_until_stop = INT64_MAX;
    std::atomic<bool> stopped = false;
  };

  RecordedRows(FloatMatrix matrix, Record* record)
      : MatrixRows(std::move(matrix)), record_(*record) {}

  absl::Status Read(Eigen::Index first, FloatRows block) const override {
    if (++record_.reads >= record_.reads_until_stop) record_.stopped = true;
    return MatrixRows::Read(first, block);
  }
  absl::StatusOr<std::unique_ptr<const RowBlocks>> Reordered(
      const std::vector<int64_t>& order, const std::atomic<bool>& stopped) const override {
    record_.reordered = std::ssize(order);
    return std::make_unique<Recorded>(*MatrixRows::Reordered(order, stopped), &record_);
  }

 private:
  class Recorded : public RowBlocks {
   public:
    Recorded(std::unique_ptr<const RowBlocks> rows, Record* record)
        : rows_(std::move(rows)), record_(*record) {}
    Eigen::Index rows() const override { return rows_->rows(); }
    Eigen::Index cols() const override { return rows_->cols(); }
    absl::Status Read(Eigen::Index first, FloatRows block) const override {
      const bool follows = block.data() == end_;
      at_once_ = block.rows() + (follows ? at_once_ : 0);
      end_ = block.data() + block.size();
      record_.most_at_once = std::max(record_.most_at_once, at_once_);
      record_.sum += block.rows();
      return rows_->Read(first, block);
    }

   private:
    const std::unique_ptr<const RowBlocks> rows_;
    Record& record_;
    mutable const float* end_ = nullptr;  // of the memory that was filled last
    mutable Eigen::Index at_once_ = 0;
  };

  Record& record_;
};

TEST(NearestOthers, StoppedSearchReadsNoMore) {
  constexpr Eigen::Index kWide = 1000;
  const FloatMatrix blocks = FloatMatrix::Random(2 * RowsOfBlock(kWide) + 1, kWide);
  RecordedRows::Record exact{.reads_until_stop = 3};  // two queries and a block
  EXPECT_TRUE(absl::IsCancelled(
      NearestOthers(RecordedRows(blocks, &exact), {0, 1}, 5, exact.stopped).status()));
  EXPECT_EQ(exact.reads, 3);

  const FloatMatrix items = MakeGroups(kLargeGallery);
  const Rows queries = EvenlySpaced(kLargeGallery, kManyQueries);
  RecordedRows::Record all;
  ASSERT_TRUE(NearestOthers(RecordedRows(items, &all), queries, 5, all.stopped).ok());
  // In the sample, in the first queries, and in the last.
  for (const int64_t reads : {int64_t{1}, int64_t{5000}, all.reads - kManyQueries + 1, all.reads}) {
    RecordedRows::Record some{.reads_until_stop = reads};
    EXPECT_TRUE(absl::IsCancelled(
        NearestOthers(RecordedRows(items, &some), queries, 5, some.stopped).status()));
    EXPECT_EQ(some.reads, reads);
  }
}

// Most items equal one of three, or are so near to it that single precision does not tell them
// apart. The others are as in a gallery without them.
TEST(NearestOthers, ManyNearlyEqualItemsTakeBoundedMemoryAndTime) {
  constexpr int64_t kItems = 2 * kLargeGallery, kCount = 20;
  constexpr int64_t kLists = kManyQueries / 32, kOfProbed = 32 * kItems / kLists;
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
    RecordedRows::Record record;
    const auto nearest =
        NearestOthers(RecordedRows(items, &record), queries, kCount, record.stopped).value();
    EXPECT_LE(record.most_at_once, 2 * kOfProbed + 1024);
    EXPECT_LT(record.sum, 9 * kLists * kOfProbed / 8) << "nearly as with equally long lists";
    if (noise == 0) {
      EXPECT_EQ(record.reordered, kItems / 2 + kCount + 1) << "of the list that is too long";
    } else {
      EXPECT_GE(record.most_at_once, 2 * kOfProbed) << "several blocks";
    }
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

TEST(MakeItemLists, FewerDistinctItemsThanGroupsGiveNoEmptyList) {
  constexpr int64_t kItems = 100'000, kLists = kMaxFlatLists + 76;
  FloatMatrix items(kItems, kColumns);
  for (Eigen::Index row = 0; row < kItems; ++row) items.row(row).setConstant(row % 3 == 0 ? 1 : -1);
  // Not in the sample, and away from it as groups are that FAISS splits because they are empty.
  const std::vector<Eigen::Index> sample = KMeansSample(kItems, kLists, kRoughKMeans);
  std::vector<bool> is_near(kItems);
  for (const Eigen::Index row : sample) is_near[static_cast<size_t>(row)] = true;
  for (const float step : {-.1F, -.02F, -.01F, .01F, .02F, .1F}) {
    const auto other = std::find(is_near.begin(), is_near.end(), false);
    *other = true;
    const Eigen::Index row = other - is_near.begin();
    for (Eigen::Index col = 0; col < kColumns; ++col) {
      items(row, col) *= 1 + (col % 2 == 0 ? step : -step);
    }
  }
  const ItemLists lists = MakeItemLists(MatrixRows(items), kLists, {false}).value();
  std::vector<int64_t> sizes(static_cast<size_t>(lists.centroids.rows()));
  for (const int64_t list : lists.list_of_item) ++sizes.at(static_cast<size_t>(list));
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 0), 0);
  for (Eigen::Index row = 0; row < kItems; row += 7) {
    const auto centroid = lists.centroids.row(lists.list_of_item[static_cast<size_t>(row)]);
    EXPECT_LT((items.row(row) - centroid).norm(), .3);
  }
}

}  // namespace
}  // namespace privatemail

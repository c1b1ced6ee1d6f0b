#include "server/cells/cell_index.h"

#include <malloc.h>

#include <algorithm>

#include "common/cells/cell_lists.h"
#include "common/numerics/neighbors.h"
#include "server/cells/anchor_training.h"
#include "tests/testing/build_cells.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

constexpr int kItems = 200;

FloatMatrix FloatUnitRows(const FloatMatrix& rows) {
  FloatMatrix units = rows;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    units.row(i) = (rows.row(i).cast<double>() / rows.row(i).cast<double>().norm()).cast<float>();
  }
  return units;
}

struct Scene {
  Anchors anchors = SmallAnchors();
  PublicParameters parameters;
  Gallery gallery = GalleryOf(MakeItems(kItems, 1));
  std::shared_ptr<const CellIndex> index;

  explicit Scene(CellCode code = CellCode::kFloat16) {
    gallery.version = 9;
    parameters =
        *MakePublicParameters("uuid", SmallSettings(), anchors, {}, "vectors",
                              *PartitionAnchors(FloatUnitRows(anchors.features), {3, 5}), code);
    Build();
  }

  void Build() { index = BuildCells(parameters, anchors, gallery); }

  std::vector<int32_t> Rows(size_t partition, const std::vector<uint32_t>& cells, double epsilon,
                            int64_t length) const {
    return index->RowsFor(partition, cells, epsilon, length, [] { return false; }).value();
  }

  // For each cell alone.
  std::vector<std::vector<int64_t>> Lists(size_t partition, double epsilon, int64_t length) const {
    std::vector<std::vector<int64_t>> lists;
    for (int64_t cell = 0; cell < parameters.cell_partitions[partition].cells; ++cell) {
      const std::vector<int32_t> rows =
          Rows(partition, {static_cast<uint32_t>(cell)}, epsilon, length);
      EXPECT_EQ(std::ssize(rows), length);
      lists.emplace_back(rows.begin(), rows.end());
    }
    return lists;
  }
};

// Lists over exact neighbours in double; cell_lists_test.cc has Demand and CellLists by hand.
std::vector<std::vector<int64_t>> ListsByHand(const Scene& scene, size_t partition, double epsilon,
                                              int64_t length) {
  const FloatMatrix items = FloatUnitRows(scene.gallery.features);
  const CellPartition& of = scene.parameters.cell_partitions[partition];
  const Matrix centroids = CellCentroids(of, FloatUnitRows(scene.anchors.features).cast<double>());
  KnownQueries known;
  const auto nearest = NearestRows(items.cast<double>(), items.cast<double>(), Demand::kRanks + 1);
  ItemCells lie;
  for (Eigen::Index item = 0; item < items.rows(); ++item) {
    known.nearest.emplace_back();
    for (const Neighbor& one : nearest[static_cast<size_t>(item)]) {
      if (one.row != item) known.nearest.back().push_back(one.row);
    }
    const Neighbor cell = NearestRows(items.row(item).cast<double>(), centroids, 1).front()[0];
    lie.cells.push_back(cell.row);
    lie.squared_distances.push_back(static_cast<float>(cell.squared_distance));
  }
  known.cells = lie.cells;
  return CellLists(Demand(known, of.cells, items.rows()), lie, epsilon, length);
}

// Demand is a sum of floats, so adjacent rows may be swapped.
int Differences(std::vector<std::vector<int64_t>> a, std::vector<std::vector<int64_t>> b) {
  int differences = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    std::sort(a[i].begin(), a[i].end());
    std::sort(b[i].begin(), b[i].end());
    std::vector<int64_t> only;
    std::set_difference(a[i].begin(), a[i].end(), b[i].begin(), b[i].end(),
                        std::back_inserter(only));
    differences += static_cast<int>(only.size());
  }
  return differences;
}

TEST(CellIndex, EqualsListsFromExactNeighbours) {
  const Scene scene;
  ASSERT_NE(scene.index, nullptr);
  EXPECT_EQ(scene.index->items(), kItems);
  EXPECT_EQ(scene.index->items_version(), 9u);
  for (const size_t partition : {1, 0}) {
    for (const double epsilon : {8., .5}) {
      for (const int64_t length : {150, 20, kItems}) {
        const auto by_hand = ListsByHand(scene, partition, epsilon, length);
        EXPECT_LE(Differences(scene.Lists(partition, epsilon, length), by_hand), 1)
            << partition << " " << epsilon << " " << length;
      }
    }
  }
  EXPECT_GT(Differences(scene.Lists(0, 8, 20), scene.Lists(0, .5, 20)), 5)
      << "epsilon decides what is worth sending";
}

TEST(CellIndex, RowsOfSeveralCellsAreDistinctAndInCellOrder) {
  const Scene scene;
  for (const int64_t length : {5, 60, kItems}) {
    const auto lists = scene.Lists(1, 2, length);
    std::vector<int32_t> merged;
    for (const size_t cell : {1, 2, 4}) {
      for (const int64_t row : lists[cell]) {
        if (std::find(merged.begin(), merged.end(), row) == merged.end()) {
          merged.push_back(static_cast<int32_t>(row));
        }
      }
    }
    EXPECT_EQ(scene.Rows(1, {1, 2, 4}, 2, length), merged) << length;
  }
}

TEST(CellIndex, CellsDependOnDirectionOnly) {
  Scene scene;
  const auto before = scene.Lists(0, 4, 20);
  scene.gallery.features *= 1e-30F;  // whose squares no float holds
  scene.Build();
  EXPECT_LE(Differences(scene.Lists(0, 4, 20), before), 1);
}

TEST(CellIndex, GalleryOfASingleItemAnswers) {
  Scene scene;
  scene.gallery = GalleryOf(MakeItems(1, 1));
  scene.Build();
  EXPECT_THAT(scene.Lists(0, 1, 1)[2], ::testing::ElementsAre(0));
}

TEST(CellIndex, StoppedCreateReadsOneBlock) {
  class CountedRows : public MatrixRows {
   public:
    using MatrixRows::MatrixRows;
    absl::Status Read(Eigen::Index first, FloatRows block) const override {
      ++reads;
      return MatrixRows::Read(first, block);
    }
    mutable int reads = 0;
  };
  const Scene scene;
  const CountedRows items(FloatMatrix::Zero(2 * RowsOfBlock(kDim), kDim));
  const auto stopped =
      CellIndex::Create(scene.parameters, scene.anchors, scene.gallery, items, {true}, 0, nullptr);
  EXPECT_THAT(stopped, FailsWith(kCancelled));
  EXPECT_EQ(items.reads, 1);
}

TEST(CellIndex, StopsWhenCancelled) {
  const Scene scene;
  EXPECT_THAT(scene.index->RowsFor(0, {1}, 1, 5, [] { return true; }),
              FailsWith(kCancelled, "no longer waits"));
}

int64_t AllocatedBytes() {
  const struct mallinfo2 all = mallinfo2();
  return static_cast<int64_t>(all.uordblks + all.hblkhd);
}

// A thousand lists of a quarter of the items take 8 MB. (Sanitizers replace the allocator, so
// nothing is measured.)
TEST(CellIndex, ManyCellsTakeBoundedMemory) {
  constexpr int kMany = 8000, kManyCells = 1000;
  Anchors anchors = SmallAnchors();
  anchors.features = FloatMatrix::Random(kManyCells, kDim);
  anchors.labels.resize(kManyCells);
  CellPartition partition{.cells = kManyCells, .cell_of_anchor = {}};
  std::vector<uint32_t> cells;
  for (int i = 0; i < kManyCells; ++i) {
    anchors.labels[static_cast<size_t>(i)] = i % 3;
    partition.cell_of_anchor.push_back(i);
    if (i > 0) cells.push_back(static_cast<uint32_t>(i));
  }
  const PublicParameters parameters = *MakePublicParameters(
      "uuid", SmallSettings(), anchors, {}, "vectors", {partition}, CellCode::kFloat16);
  const auto index = BuildCells(parameters, anchors, GalleryOf(MakeItems(kMany, 1)));
  const int64_t before = AllocatedBytes();
  int64_t most = 0;
  int polls = 0;
  const auto measure = [&] {  // before each list is made
    ++polls;
    most = std::max(most, AllocatedBytes() - before);
    return false;
  };
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> rows,
                       index->RowsFor(0, cells, 1. / 16, kMany / 4, measure));
  EXPECT_EQ(polls, kManyCells - 1) << "each list was computed";
  EXPECT_GT(rows.size(), kMany / 4U);
  polls = 0;
  EXPECT_THAT(index->RowsFor(0, cells, 8, kMany, measure), IsOk());
  EXPECT_EQ(polls, 1) << "the first list has all rows";
  constexpr int64_t kKept = 1 << 20;
  EXPECT_LT(most, kKept + index->MemoryOfRows(kManyCells - 1, kMany / 4));
  EXPECT_EQ(index->MemoryOfRows(kManyCells - 1, kMany / 4),
            4 * kMany + kMany / 8 + 12 * kMany + 8 * 2048);
  EXPECT_EQ(index->MemoryOfRows(2, 10), 4 * 20 + kMany / 8 + 12 * kMany + 8 * 64);
}

EncodedBlock BlockOf(const char* message) { return {message, 1, nullptr}; }

TEST(CellIndex, CachesBlocksPerHiddenRows) {
  const Scene scene;
  int made = 0;
  const auto ask = [&](const CellIndex::BlockKey& key, const std::shared_ptr<const void>& hidden) {
    const auto block = scene.index->BlockFor(
        key, hidden, [] { return false; },
        [&] {
          ++made;
          return BlockOf(hidden == nullptr ? "all" : "some");
        });
    EXPECT_THAT(block, IsOk());
    EXPECT_EQ((*block)->items, 1u);
    return (*block)->bytes;
  };
  const CellIndex::BlockKey key = {0, 1, 2, false, 0, 10};
  EXPECT_EQ(ask(key, nullptr), "all");
  EXPECT_EQ(ask(key, nullptr), "all");
  EXPECT_EQ(made, 1);
  for (const CellIndex::BlockKey& other : {CellIndex::BlockKey{1, 1, 2, false, 0, 10},
                                           {0, 2, 2, false, 0, 10},
                                           {0, 1, 1, false, 0, 10},
                                           {0, 1, 2, true, 0, 10},
                                           {0, 1, 2, false, 5, 10},
                                           {0, 1, 2, false, 0, 11}}) {
    const int before = made;
    ask(other, nullptr);
    EXPECT_EQ(made, before + 1);
  }
  made = 0;
  auto hidden = std::make_shared<const int>(1);
  const std::weak_ptr<const int> watched = hidden;
  EXPECT_EQ(ask(key, hidden), "some") << "deleted items are in no cached block";
  EXPECT_EQ(ask(key, hidden), "some");
  EXPECT_EQ(made, 1);
  hidden.reset();
  EXPECT_FALSE(watched.expired()) << "its address must stay unique";
  // A call with the view before the deletion gets the block of that view.
  EXPECT_EQ(ask(key, nullptr), "all");
  EXPECT_TRUE(watched.expired()) << "released with the block";
  EXPECT_EQ(ask(key, std::make_shared<const int>(1)), "some");
}

TEST(CellIndex, BlockSizeIsBounded) {
  Scene scene;
  // 10 bytes of id, 8 of code and about 12 of overhead.
  const auto rows_for = [&](bool with_payloads) {
    scene.Build();
    return scene.index->RowsPerBlock(with_payloads);
  };
  EXPECT_NEAR(static_cast<double>(rows_for(false)), 524'288. / 28, 2000);
  scene.gallery.payloads.assign(kItems, std::string(2000, 'x'));
  EXPECT_NEAR(static_cast<double>(rows_for(false)), 524'288. / 28, 2000) << "not sent";
  EXPECT_NEAR(static_cast<double>(rows_for(true)), 524'288. / 2028, 6);
  scene.gallery.payloads.assign(kItems, "");
  scene.gallery.payloads[7] = std::string(100'000, 'x');
  EXPECT_NEAR(static_cast<double>(rows_for(true)), 20, 2) << "of which each could be as large";
  scene.gallery.payloads[7] = std::string(10'000'000, 'x');
  EXPECT_EQ(rows_for(true), 1);
}

// All 200 items of 4 dimensions are queries; there are two partitions.
TEST(CellIndex, MemoryToCreateMatchesItsParts) {
  const Scene scene;
  const int64_t of_row = 16 + 2 * 8;  // features, and its number twice
  // The code and two partitions.
  const int64_t of_item = 8 + 2 * 16;
  // Its number, its row twice, 65 neighbours as seven numbers each in four vectors, demand in two
  // partitions.
  const int64_t of_query = 8 + 2 * of_row + 65 * 7 * 8 + 4 * 24 + 2 * 64 * 16;
  ASSERT_EQ(kDim, 4);
  EXPECT_EQ(CellIndex::MemoryToCreate(scene.parameters, kItems),
            kItems * (of_item + 2 * of_row + of_query))
      << "all items are in one block, which is copied";
  EXPECT_GT(CellIndex::MemoryToCreate(scene.parameters, 100'000'000), 100'000'000 * of_item);
  EXPECT_LT(CellIndex::MemoryToCreate(scene.parameters, 100'000'000), 100'000'000 * (of_item + 200))
      << "a sample of them are queries";
}

}  // namespace
}  // namespace privatemail::testing

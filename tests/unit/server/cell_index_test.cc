// What answers for cells, on small data.
#include "server/cells/cell_index.h"

#include <algorithm>
#include <thread>

#include "common/cells/cell_lists.h"
#include "common/numerics/neighbors.h"
#include "common/protocol/item_code.h"
#include "server/cells/partition_anchors.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int kItems = 200;

FloatMatrix UnitRows(const FloatMatrix& rows) {
  FloatMatrix units = rows;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    units.row(i) = (rows.row(i).cast<double>() / rows.row(i).cast<double>().norm()).cast<float>();
  }
  return units;
}

TEST(PartitionAnchors, PutsEachAnchorWithItsNearestCentroidAndAlwaysAlike) {
  const FloatMatrix anchors = UnitRows(SmallAnchors().features);
  ASSERT_OK_AND_ASSIGN(const auto partitions, PartitionAnchors(anchors, {3, 5}));
  ASSERT_EQ(partitions.size(), 2u);
  EXPECT_THAT(Validate(partitions, 12), IsOk());
  for (const CellPartition& partition : partitions) {
    // k-means has settled: whoever is nearer to another cell's mean would have moved.
    const Matrix centroids = CellCentroids(partition, anchors.cast<double>());
    for (Eigen::Index i = 0; i < 12; ++i) {
      Eigen::Index nearest = 0;
      (centroids.rowwise() - anchors.row(i).cast<double>()).rowwise().norm().minCoeff(&nearest);
      EXPECT_EQ(partition.cell_of_anchor[static_cast<size_t>(i)], nearest);
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto again, PartitionAnchors(anchors, {3, 5}));
  EXPECT_EQ(again[1].cell_of_anchor, partitions[1].cell_of_anchor);
}

TEST(PartitionAnchors, SaysWhichCountsCannotBe) {
  const FloatMatrix anchors = UnitRows(SmallAnchors().features);
  EXPECT_THAT(PartitionAnchors(anchors, {1}),
              FailsWith(kInvalid, "cells must be between 2 and 12, but is 1"));
  EXPECT_THAT(PartitionAnchors(anchors, {13}),
              FailsWith(kInvalid, "cells must be between 2 and 12, but is 13"));
  EXPECT_THAT(PartitionAnchors(anchors, std::vector<int64_t>(9, 2)),
              FailsWith(kInvalid, "number of cell partitions must be between 0 and 8, but is 9"));
  EXPECT_THAT(PartitionAnchors(FloatMatrix::Ones(12, 4), {3}),
              FailsWith(kInvalid, "cells must be fewer than 3"));
}

struct Scene {
  Anchors anchors = SmallAnchors();
  PublicParameters parameters;
  Gallery gallery = GalleryOf(MakeItems(kItems, 1));
  std::shared_ptr<const CellIndex> index;

  explicit Scene(CellCode code = CellCode::kFloat16) {
    gallery.version = 9;
    parameters = *MakePublicParameters("uuid", SmallSettings(), anchors, {}, "vectors",
                                       *PartitionAnchors(UnitRows(anchors.features), {3, 5}), code);
    index = CellIndex::Make(parameters, anchors, gallery, /*stopped=*/{false});
  }

  std::vector<std::vector<int64_t>> Lists(size_t partition, double epsilon, int64_t length) const {
    std::vector<uint32_t> cells;
    for (int64_t cell = 0; cell < parameters.cell_partitions[partition].cells; ++cell) {
      cells.push_back(static_cast<uint32_t>(cell));
    }
    const auto made = index->ListsFor(partition, cells, epsilon, length, [] { return false; });
    EXPECT_THAT(made, IsOk());
    std::vector<std::vector<int64_t>> lists;
    for (const KeptLists::List& list : *made) {
      EXPECT_GE(std::ssize(*list), length);
      lists.emplace_back(list->begin(), list->begin() + length);
    }
    return lists;
  }
};

// The lists of the evaluation's parts, from neighbours that are scanned for in double.
std::vector<std::vector<int64_t>> ListsByHand(const Scene& scene, size_t partition, double epsilon,
                                              int64_t length) {
  const FloatMatrix items = UnitRows(scene.gallery.features);
  const CellPartition& of = scene.parameters.cell_partitions[partition];
  const Matrix centroids = CellCentroids(of, UnitRows(scene.anchors.features).cast<double>());
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

// Which item is wanted how much is a sum of floats, so that neighbours in a list may change places.
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

TEST(CellIndex, ListsWhatTheEvaluationListsWhateverWasAskedForBefore) {
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

TEST(CellIndex, KnowsItsItemsAndEncodesThemScaledToLengthOne) {
  for (const CellCode code : {CellCode::kFloat16, CellCode::kScalar8}) {
    const Scene scene(code);
    const CellIndex& index = *scene.index;
    EXPECT_EQ(index.IdOf(7), "item-007");
    EXPECT_EQ(index.LabelOf(7), scene.gallery.labels[7]);
    EXPECT_EQ(index.RowOf("item-150"), 150);
    EXPECT_EQ(index.RowOf("nobody"), std::nullopt);
    const FloatMatrix units = UnitRows(scene.gallery.features);
    for (const int64_t row : {0, 7, kItems - 1}) {
      ASSERT_OK_AND_ASSIGN(const FloatMatrix back,
                           DecodeItemCodes(scene.parameters, index.CodeOf(row)));
      EXPECT_LT((back - units.row(row)).cwiseAbs().maxCoeff(), 1. / 250);
    }
  }
}

TEST(CellIndex, ItemsOfAnyScaleLieWhereTheirDirectionPoints) {
  Scene scene;
  const auto before = scene.Lists(0, 4, 20);
  scene.gallery.features *= 1e-30F;  // whose squares no float holds
  scene.index = CellIndex::Make(scene.parameters, scene.anchors, scene.gallery, {false});
  EXPECT_LE(Differences(scene.Lists(0, 4, 20), before), 1);
}

TEST(CellIndex, AnEmptyGalleryAndOneItemAnswerToo) {
  Scene scene;
  scene.gallery = GalleryOf(MakeItems(1, 1));
  scene.index = CellIndex::Make(scene.parameters, scene.anchors, scene.gallery, {false});
  EXPECT_THAT(scene.Lists(0, 1, 1)[2], ElementsAre(0));
  scene.gallery = GalleryOf({});
  scene.index = CellIndex::Make(scene.parameters, scene.anchors, scene.gallery, {false});
  EXPECT_TRUE(scene.Lists(0, 1, 0)[2].empty());
}

TEST(CellIndex, StopsWhenItIsToldTo) {
  const Scene scene;
  EXPECT_EQ(CellIndex::Make(scene.parameters, scene.anchors, scene.gallery, {true}), nullptr);
  EXPECT_THAT(scene.index->ListsFor(0, std::vector<uint32_t>{1}, 1, 5, [] { return true; }),
              FailsWith(absl::StatusCode::kCancelled, "the caller is gone"));
}

std::vector<int32_t> Numbers(int count) {
  std::vector<int32_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class KeptListsTest : public ::testing::Test {
 protected:
  // How long the list is that comes for this wish.
  int64_t Ask(int64_t cell, int64_t length) {
    const auto list = kept_.Get(
        {0, 1, cell}, length, [] { return false; },
        [&] {
          ++made_;
          return Numbers(static_cast<int>(length));
        });
    EXPECT_THAT(list, IsOk());
    return std::ssize(**list);
  }

  KeptLists kept_{/*most_rows=*/100};
  int made_ = 0;
};

TEST_F(KeptListsTest, OneListServesAllThatAreShorter) {
  EXPECT_EQ(Ask(1, 50), 50);
  EXPECT_EQ(Ask(1, 20), 50);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Ask(1, 60), 60);
  EXPECT_EQ(Ask(1, 50), 60);
  EXPECT_EQ(made_, 2);
}

TEST_F(KeptListsTest, ForgetsWhatWasAskedForLeastLately) {
  Ask(1, 40);
  Ask(2, 40);
  Ask(1, 40);
  EXPECT_EQ(made_, 2);
  Ask(3, 40);  // 120 rows: the second goes
  Ask(1, 40);
  EXPECT_EQ(made_, 3);
  Ask(2, 40);
  EXPECT_EQ(made_, 4);
  Ask(4, 1000);  // one that is too long by itself is given, and the only one to be kept
  Ask(4, 1000);
  EXPECT_EQ(made_, 5);
}

TEST_F(KeptListsTest, WhoIsGoneDoesNotWaitForTheListOfAnother) {
  std::atomic<bool> making = false, let_go = false;
  std::thread slow([&] {
    const auto list = kept_.Get(
        {0, 1, 1}, 10, [] { return false; },
        [&] {
          making = true;
          while (!let_go) std::this_thread::yield();
          return Numbers(10);
        });
    EXPECT_THAT(list, IsOk());
  });
  while (!making) std::this_thread::yield();
  std::atomic<int> asked = 0;
  const auto unmade = [] { return std::vector<int32_t>(); };
  EXPECT_THAT(kept_.Get(
                  {0, 1, 2}, 10, [&] { return ++asked == 3; }, unmade),
              FailsWith(absl::StatusCode::kCancelled, "the caller is gone"));
  EXPECT_EQ(asked, 3) << "asked again while it waited";
  let_go = true;
  slow.join();
  EXPECT_EQ(Ask(2, 10), 10);
}

TEST_F(KeptListsTest, IsOpenToOthersAfterAListThatCouldNotBeMade) {
  const auto no_memory = []() -> std::vector<int32_t> { throw std::bad_alloc(); };
  EXPECT_THROW((void)kept_.Get(
                   {0, 1, 1}, 10, [] { return false; }, no_memory),
               std::bad_alloc);
  EXPECT_EQ(Ask(1, 10), 10);
}

// Also what ThreadSanitizer looks at.
TEST_F(KeptListsTest, ManyAskAtOnceAndEachGetsWhatItAskedFor) {
  std::atomic<int> making = 0, wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 200; ++i) {
        const int64_t length = 10 + (i * 7 + caller) % 40;
        const auto list = kept_.Get(
            {0, 1, i % 5}, length, [] { return false; },
            [&] {
              if (++making != 1) ++wrong;
              --making;
              return Numbers(static_cast<int>(length));
            });
        if (!list.ok() || std::ssize(**list) < length) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace privatemail::testing

#include "common/wire/snapshot.h"

#include "common/base/status_macros.h"
#include "tests/unit/common/wire/snapshot_bytes.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

TEST(Snapshot, MatchesDocumentedBytes) {
  const std::string bytes = SnapshotOf(2);
  EXPECT_EQ(bytes.substr(0, kHeader), std::string("\x89PMSNAP\n\x01\0\0\0", 12));
  const std::vector<std::string> blocks = BlocksOf(bytes);
  ASSERT_THAT(blocks, SizeIs(4));
  for (uint8_t i = 0; i < 4; ++i) {
    const std::string body = blocks[i].substr(9, blocks[i].size() - 25);
    EXPECT_EQ(blocks[i], Block(static_cast<uint8_t>(i + 1), i + 1U, body));
  }
  v1::SnapshotEnd end;
  ASSERT_TRUE(end.ParseFromString(blocks[3].substr(9, blocks[3].size() - 25)));
  EXPECT_EQ(end.anchors(), 8u);
  EXPECT_EQ(end.items(), 2u);
  EXPECT_EQ(end.blocks(), 4u);
  const std::string before = Join(bytes, {blocks[0], blocks[1], blocks[2]});
  std::string digest(32, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(before.data()), before.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  EXPECT_EQ(end.sha256(), digest);
}

TEST(Snapshot, RoundTripsInPiecesOfAnySize) {
  const std::string bytes = SnapshotOf(7);
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{24}, bytes.size()}) {
    v1::SnapshotCollection head;
    Anchors anchors;
    std::vector<v1::Item> items;
    SnapshotHandlers handlers;
    handlers.collection = [&](const v1::SnapshotCollection& found, const PublicParameters&) {
      head = found;
      return absl::OkStatus();
    };
    handlers.anchors = [&](const Anchors& found) {
      anchors = found;
      return absl::OkStatus();
    };
    handlers.items = [&](const v1::SnapshotItems& found) {
      items.insert(items.end(), found.items().begin(), found.items().end());
      return absl::OkStatus();
    };
    ASSERT_THAT(ReadAll(bytes, piece, handlers), IsOk());
    EXPECT_EQ(head.SerializeAsString(), HeadOf(SomeAnchors(), 7).SerializeAsString());
    ASSERT_THAT(items, SizeIs(7));
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(items[i].SerializeAsString(), SomeItem(i).SerializeAsString());
    }
    EXPECT_EQ(anchors.features, SomeAnchors().features);
    EXPECT_EQ(anchors.labels, SomeAnchors().labels);
  }
  EXPECT_THAT(ReadAll(SnapshotOf(0)), IsOk());
}

// Writes and reads a snapshot of such a collection; returns the items and the number of anchors.
struct Copied {
  std::vector<v1::Item> items;
  uint64_t anchors = 0;
  int64_t anchor_labels = 0;
};
absl::StatusOr<Copied> Copy(const PublicParameters& parameters, const Anchors& anchors,
                            const std::vector<v1::Item>& items) {
  v1::SnapshotCollection head;
  ToProto(parameters, head.mutable_parameters());
  head.set_items(items.size());
  std::string bytes;
  SnapshotWriter writer([&](absl::string_view block) {
    bytes.append(block.data(), block.size());
    return absl::OkStatus();
  });
  PM_RETURN_IF_ERROR(writer.Begin(head, anchors));
  for (const v1::Item& item : items) PM_RETURN_IF_ERROR(writer.Add(item));
  PM_RETURN_IF_ERROR(writer.Finish());
  Copied copied;
  SnapshotHandlers handlers;
  handlers.anchors = [&](const Anchors& part) {
    copied.anchors += static_cast<uint64_t>(part.features.rows());
    copied.anchor_labels += std::ssize(part.labels);
    return absl::OkStatus();
  };
  handlers.items = [&](const v1::SnapshotItems& part) {
    copied.items.insert(copied.items.end(), part.items().begin(), part.items().end());
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ReadAll(bytes, 100, handlers));
  return copied;
}

TEST(Snapshot, HoldsCollectionsWithoutAnchorsAndItemsWithoutLabels) {
  PublicParameters parameters = *MakeParametersWithoutAnchors(
      "00000000-0000-4000-8000-000000000000", "vectors", Metric::kEuclidean);
  ASSERT_OK_AND_ASSIGN(Copied copied, Copy(parameters, {}, {}));
  EXPECT_THAT(copied.items, SizeIs(0)) << "a collection without a dimension";
  EXPECT_THAT(Copy(parameters, {}, {SomeItem(0)}),
              FailsWith(kDataLoss, "holds an item of 3 features, not of 0"));
  parameters.feature_dim = kDim;
  v1::Item unlabelled = SomeItem(0);
  unlabelled.set_label(0);
  unlabelled.set_unlabelled(true);
  ASSERT_OK_AND_ASSIGN(copied, Copy(parameters, {}, {unlabelled, SomeItem(1)}));
  ASSERT_THAT(copied.items, SizeIs(2));
  EXPECT_EQ(copied.items[0].SerializeAsString(), unlabelled.SerializeAsString());
  EXPECT_EQ(copied.anchors, 0u);
}

TEST(Snapshot, HoldsAnchorsWithoutLabels) {
  Anchors anchors = SomeAnchors();
  anchors.labels.clear();
  PublicParameters parameters = *MakePublicParameters("00000000-0000-4000-8000-000000000000",
                                                      {.alpha = 0}, anchors, {}, "vectors");
  parameters.with_encrypted = true;
  ASSERT_OK_AND_ASSIGN(const Copied copied, Copy(parameters, anchors, {SomeItem(0)}));
  EXPECT_EQ(copied.anchors, 8u);
  EXPECT_EQ(copied.anchor_labels, 0);
  EXPECT_THAT(Copy(parameters, SomeAnchors(), {}),
              FailsWith(kDataLoss, "does not have the shape that the first block announced"));
}

TEST(Snapshot, SplitsItemsIntoBlocksOfAMegabyte) {
  const std::string bytes = SnapshotOf(40, 100'000);
  const std::vector<std::string> blocks = BlocksOf(bytes);
  EXPECT_THAT(blocks, SizeIs(7));  // 10 items each
  for (const std::string& block : blocks) EXPECT_LT(block.size(), 1'100'000u);
  EXPECT_THAT(ReadAll(bytes), IsOk());
}

TEST(Snapshot, UnknownVersionAndForeignFileAreDistinguished) {
  std::string bytes = SnapshotOf(3);
  bytes[8] = 2;
  EXPECT_THAT(ReadAll(bytes), FailsWith(kDataLoss,
                                        "block 0 (header) says that the format has "
                                        "version 2, but this program reads version 1"));
  EXPECT_THAT(ReadAll("SQLite format 3\0and so on"),
              FailsWith(kDataLoss, "block 0 (header) is not that of a snapshot"));
}

TEST(Snapshot, HandlerErrorStopsReading) {
  const std::string bytes = SnapshotOf(3);
  SnapshotHandlers handlers;
  handlers.items = [](const v1::SnapshotItems&) { return absl::InvalidArgumentError("no pear"); };
  EXPECT_THAT(ReadAll(bytes, 100, handlers),
              FailsWith(kDataLoss, "block 3 (items) is invalid: no pear"));
  handlers.items = [](const v1::SnapshotItems&) { return absl::ResourceExhaustedError("full"); };
  EXPECT_THAT(ReadAll(bytes, 100, handlers), FailsWith(kExhausted, "full"));
}

TEST(Snapshot, MissingItemsFailFinish) {
  const Anchors anchors = SomeAnchors();
  SnapshotWriter writer([](absl::string_view) { return absl::OkStatus(); });
  ASSERT_THAT(writer.Begin(HeadOf(anchors, 2), anchors), IsOk());
  ASSERT_THAT(writer.Add(SomeItem(0)), IsOk());
  EXPECT_THAT(writer.Finish(), FailsWith(kInternal, "2 items, but has 1"));
}

}  // namespace
}  // namespace privatemail::testing

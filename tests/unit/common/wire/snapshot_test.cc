#include "common/wire/snapshot.h"

#include "tests/unit/common/wire/snapshot_bytes.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
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
    FloatMatrix anchors;
    std::vector<v1::Item> items;
    SnapshotHandlers handlers;
    handlers.collection = [&](v1::SnapshotCollection found) {
      head = std::move(found);
      return absl::OkStatus();
    };
    handlers.anchors = [&](const v1::SnapshotAnchors& found) {
      anchors = *FromProto("anchors", found.features());
      EXPECT_THAT(found.labels(), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
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
    EXPECT_EQ(anchors.rows(), 8);
  }
  EXPECT_THAT(ReadAll(SnapshotOf(0)), IsOk());
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
  EXPECT_THAT(ReadAll(bytes, 100, handlers),
              FailsWith(absl::StatusCode::kResourceExhausted, "full"));
}

TEST(Snapshot, MissingItemsFailFinish) {
  const Anchors anchors = SomeAnchors();
  SnapshotWriter writer([](absl::string_view) { return absl::OkStatus(); });
  ASSERT_THAT(writer.Begin(HeadOf(anchors, 2), anchors), IsOk());
  ASSERT_THAT(writer.Add(SomeItem(0)), IsOk());
  EXPECT_THAT(writer.Finish(), FailsWith(absl::StatusCode::kInternal, "2 items, but has 1"));
}

}  // namespace
}  // namespace privatemail::testing

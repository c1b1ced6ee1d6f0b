// Damaged and hostile snapshots.
#include <random>

#include "tests/unit/common/wire/snapshot_bytes.h"

namespace privatemail::testing {
namespace {

// The number of the block that contains the byte.
int BlockAt(const std::string& bytes, size_t at) {
  int number = 0;
  size_t end = kHeader;
  for (const std::string& block : BlocksOf(bytes)) {
    if (at < end) break;
    end += block.size();
    ++number;
  }
  return number;
}

TEST(SnapshotDamage, FlippedBitIsDetectedAtItsBlock) {
  for (const std::string& good : {SnapshotOf(30), SnapshotOf(40, 100'000)}) {
    std::mt19937 random(1);
    const int flips = good.size() < 100'000 ? 1000 : 20;
    for (int flip = 0; flip < flips; ++flip) {
      std::string bytes = good;
      const size_t bit = random() % (8 * bytes.size());
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      EXPECT_THAT(ReadAll(bytes),
                  FailsWith(kDataLoss, absl::StrCat("block ", BlockAt(good, bit / 8), " (")))
          << "bit " << bit;
    }
  }
}

TEST(SnapshotDamage, TruncationIsDetected) {
  const std::string good = SnapshotOf(3);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(ReadAll(absl::string_view(good).substr(0, length)), FailsWith(kDataLoss, "block "))
        << length;
  }
  const std::vector<std::string> blocks = BlocksOf(good);
  EXPECT_THAT(ReadAll(Join(good, {blocks[0], blocks[1], blocks[2]})),
              FailsWith(kDataLoss, "block 4 is missing: the snapshot is truncated"));
  EXPECT_THAT(ReadAll(absl::string_view(good).substr(0, good.size() - 1)),
              FailsWith(kDataLoss, "block 4 (end) is cut off"));
  EXPECT_THAT(ReadAll(""), FailsWith(kDataLoss, "block 0 (header) is cut off"));
}

TEST(SnapshotDamage, MissingRepeatedMisplacedOrForeignBlockIsNamed) {
  const std::string bytes = SnapshotOf(40, 100'000);
  const std::vector<std::string> good = BlocksOf(bytes);
  const auto read = [&](const std::vector<std::string>& blocks) {
    return ReadAll(Join(bytes, blocks));
  };
  std::vector<std::string> blocks = good;
  std::swap(blocks[3], blocks[4]);
  EXPECT_THAT(read(blocks), FailsWith(kDataLoss, "block 4 (items) calls itself number 5"));
  blocks = good;
  blocks.insert(blocks.begin() + 4, good[3]);
  EXPECT_THAT(read(blocks), FailsWith(kDataLoss, "block 5 (items) calls itself number 4"));
  blocks = good;
  blocks.erase(blocks.begin() + 3);
  EXPECT_THAT(read(blocks), FailsWith(kDataLoss, "block 4 (items) calls itself number 5"));
  // A block of another snapshot with the right number.
  blocks = good;
  blocks[4] = BlocksOf(SnapshotOf(40, 99'990))[4];
  EXPECT_THAT(read(blocks), FailsWith(kDataLoss, "block 7 (end) does not match the blocks before"));
  EXPECT_THAT(ReadAll(bytes + "x"), FailsWith(kDataLoss, "block 7 (end) is followed by bytes"));
  EXPECT_THAT(ReadAll(bytes + bytes), FailsWith(kDataLoss, "block 7 (end) is followed by bytes"));
}

TEST(SnapshotDamage, HostileBlockIsNamed) {
  const std::string bytes = SnapshotOf(3);
  const std::vector<std::string> good = BlocksOf(bytes);
  const auto body = [&](int block) { return good[block].substr(9, good[block].size() - 25); };
  const auto read = [&](std::vector<std::string> blocks) { return ReadAll(Join(bytes, blocks)); };
  EXPECT_THAT(read({good[0], good[1], Block(4, 3, body(3))}),
              FailsWith(kDataLoss, "block 3 (end) counts 3 items in 4 blocks, but there are 0"));
  EXPECT_THAT(read({good[0], Block(3, 2, body(2))}),
              FailsWith(kDataLoss, "block 2 (items) follows 0 anchors of 8"));
  EXPECT_THAT(read({Block(2, 1, body(1))}),
              FailsWith(kDataLoss, "block 1 (anchors) is out of place"));
  EXPECT_THAT(read({good[0], Block(1, 2, body(0))}),
              FailsWith(kDataLoss, "block 2 (collection) is out of place"));
  EXPECT_THAT(read({good[0], good[1], Block(2, 3, body(1))}),
              FailsWith(kDataLoss, "block 3 (anchors) is one too many"));
  EXPECT_THAT(read({good[0], good[1], good[2], Block(3, 4, body(2))}),
              FailsWith(kDataLoss, "block 4 (items) holds item 6 of 3"));
  EXPECT_THAT(read({good[0], good[1], Block(3, 3, "")}),
              FailsWith(kDataLoss, "block 3 (items) holds item 0 of 3"));
  EXPECT_THAT(read({good[0], good[1], Block(3, 3, "\xff\xff")}),
              FailsWith(kDataLoss, "block 3 (items) cannot be parsed"));
  EXPECT_THAT(read({Block(9, 1, "")}), FailsWith(kDataLoss, "block 1 (of unknown type 9)"));

  v1::SnapshotItems items;
  for (const int number : {1, 0, 2}) *items.add_items() = SomeItem(number);
  EXPECT_THAT(read({good[0], good[1], Block(3, 3, items.SerializeAsString())}),
              FailsWith(kDataLoss, "block 3 (items) holds items out of the order of their ids"));
  items.Clear();
  *items.add_items() = SomeItem(0);
  items.mutable_items(0)->add_features(1);
  EXPECT_THAT(read({good[0], good[1], Block(3, 3, items.SerializeAsString())}),
              FailsWith(kDataLoss, "block 3 (items) holds an item of 4 features, not of 3"));

  v1::SnapshotAnchors anchors;
  ASSERT_TRUE(anchors.ParseFromString(body(1)));
  anchors.set_labels(0, 2);
  EXPECT_THAT(
      read({good[0], Block(2, 2, anchors.SerializeAsString())}),
      FailsWith(kDataLoss, "block 2 (anchors) ends anchors that do not match their digest"));
  anchors.add_labels(2);
  EXPECT_THAT(read({good[0], Block(2, 2, anchors.SerializeAsString())}),
              FailsWith(kDataLoss, "block 2 (anchors) does not have the shape"));
  anchors.mutable_features()->set_rows(UINT32_MAX);  // RESOURCE_EXHAUSTED in other messages
  EXPECT_THAT(read({good[0], Block(2, 2, anchors.SerializeAsString())}),
              FailsWith(kDataLoss, "block 2 (anchors) is invalid: anchors is 4294967295 x 3"));
  v1::SnapshotCollection head = HeadOf(SomeAnchors(), 3);
  head.mutable_parameters()->mutable_settings()->set_embedding_dim(0);
  EXPECT_THAT(read({Block(1, 1, head.SerializeAsString())}),
              FailsWith(kDataLoss, "block 1 (collection) is invalid: embedding_dim"));
}

TEST(SnapshotDamage, HostileLengthIsRejectedBeforeAllocation) {
  std::string bytes = SnapshotOf(3).substr(0, kHeader + 9);
  for (int i = 5; i < 9; ++i) bytes[kHeader + i] = '\xff';
  EXPECT_THAT(ReadAll(bytes),
              FailsWith(kDataLoss, "block 1 (collection) claims 4294967295 bytes, more than the "));
}

}  // namespace
}  // namespace privatemail::testing

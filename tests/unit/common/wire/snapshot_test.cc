#include "common/wire/snapshot.h"

#include <openssl/sha.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

constexpr int kDim = 3;

Anchors SomeAnchors() {
  Anchors anchors;
  anchors.features.resize(8, kDim);
  for (int i = 0; i < anchors.features.size(); ++i) {
    anchors.features.data()[i] = static_cast<float>(1 + i * i % 7);
  }
  anchors.labels = {1, 2, 1, 2, 1, 2, 1, 2};
  return anchors;
}

v1::Item SomeItem(int number, size_t payload_bytes = 0) {
  v1::Item item;
  item.set_id(absl::StrCat("item-", 100000 + number));
  item.set_label(1 + number % 2);
  for (int i = 0; i < kDim; ++i) item.add_features(static_cast<float>(number + i + 1));
  if (payload_bytes > 0) item.set_payload("\"" + std::string(payload_bytes, 'x') + "\"");
  return item;
}

v1::SnapshotCollection HeadOf(const Anchors& anchors, uint64_t items) {
  EmbeddingSettings settings;
  settings.kernel_bandwidth = 1;
  v1::SnapshotCollection head;
  head.set_name("fruit");
  ToProto(*MakePublicParameters("00000000-0000-4000-8000-000000000000", settings, anchors, {},
                                "vectors"),
          head.mutable_parameters());
  head.set_items(items);
  head.set_latest_version(items);
  return head;
}

absl::StatusOr<std::string> WriteSnapshot(const v1::SnapshotCollection& head,
                                          const Anchors& anchors,
                                          const std::vector<v1::Item>& items) {
  std::string bytes;
  SnapshotWriter writer([&](absl::string_view block) {
    bytes.append(block.data(), block.size());
    return absl::OkStatus();
  });
  PM_RETURN_IF_ERROR(writer.Begin(head, anchors));
  for (const v1::Item& item : items) PM_RETURN_IF_ERROR(writer.Add(item));
  PM_RETURN_IF_ERROR(writer.Finish());
  return bytes;
}

std::string SnapshotOf(int items, size_t payload_bytes = 0) {
  std::vector<v1::Item> all;
  for (int i = 0; i < items; ++i) all.push_back(SomeItem(i, payload_bytes));
  return WriteSnapshot(HeadOf(SomeAnchors(), static_cast<uint64_t>(items)), SomeAnchors(), all)
      .value();
}

absl::Status ReadAll(absl::string_view bytes, size_t piece = 1 << 16,
                     SnapshotHandlers handlers = {}) {
  SnapshotReader reader(std::move(handlers));
  for (size_t first = 0; first < bytes.size(); first += piece) {
    if (!reader.Read(bytes.substr(first, piece)).ok()) break;  // Finish returns the same status
  }
  return reader.Finish();
}

struct FoundSnapshot {
  v1::SnapshotCollection head;
  Anchors anchors;
  std::vector<v1::Item> items;
};

absl::StatusOr<FoundSnapshot> FindSnapshot(absl::string_view bytes, size_t piece = 100) {
  FoundSnapshot found;
  SnapshotHandlers handlers;
  handlers.collection = [&](const v1::SnapshotCollection& head, const PublicParameters&) {
    found.head = head;
    return absl::OkStatus();
  };
  handlers.anchors = [&](const Anchors& anchors) {
    found.anchors = anchors;
    return absl::OkStatus();
  };
  handlers.items = [&](const v1::SnapshotItems& part) {
    found.items.insert(found.items.end(), part.items().begin(), part.items().end());
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(ReadAll(bytes, piece, handlers));
  return found;
}

uint32_t LittleEndian(absl::string_view bytes, size_t at) {
  return static_cast<uint32_t>(
      static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8 |
      static_cast<uint8_t>(bytes[at + 2]) << 16 | static_cast<uint8_t>(bytes[at + 3]) << 24);
}

constexpr size_t kHeader = 12;

std::vector<std::string> BlocksOf(absl::string_view bytes) {
  std::vector<std::string> blocks;
  for (size_t at = kHeader; at < bytes.size();) {
    const size_t length = 9 + LittleEndian(bytes, at + 5) + 16;
    blocks.emplace_back(bytes.substr(at, length));
    at += length;
  }
  return blocks;
}

std::string Join(absl::string_view bytes, const std::vector<std::string>& blocks) {
  std::string joined(bytes.substr(0, kHeader));
  for (const std::string& block : blocks) joined += block;
  return joined;
}

// A well-formed block with any body.
std::string Block(uint8_t type, uint32_t number, const std::string& body) {
  std::string block(1, static_cast<char>(type));
  for (const uint32_t value : {number, static_cast<uint32_t>(body.size())}) {
    for (int i = 0; i < 4; ++i) block.push_back(static_cast<char>(value >> (8 * i)));
  }
  block += body;
  unsigned char digest[32];
  SHA256(reinterpret_cast<const unsigned char*>(block.data()), block.size(), digest);
  return block.append(reinterpret_cast<const char*>(digest), 16);
}

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
    ASSERT_OK_AND_ASSIGN(const FoundSnapshot found, FindSnapshot(bytes, piece));
    EXPECT_EQ(found.head.SerializeAsString(), HeadOf(SomeAnchors(), 7).SerializeAsString());
    ASSERT_THAT(found.items, SizeIs(7));
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(found.items[i].SerializeAsString(), SomeItem(i).SerializeAsString());
    }
    EXPECT_EQ(found.anchors.features, SomeAnchors().features);
    EXPECT_EQ(found.anchors.labels, SomeAnchors().labels);
  }
  EXPECT_THAT(ReadAll(SnapshotOf(0)), IsOk());
}

absl::StatusOr<FoundSnapshot> CopySnapshot(const PublicParameters& parameters,
                                           const Anchors& anchors,
                                           const std::vector<v1::Item>& items) {
  v1::SnapshotCollection head;
  ToProto(parameters, head.mutable_parameters());
  head.set_items(items.size());
  PM_ASSIGN_OR_RETURN(const std::string bytes, WriteSnapshot(head, anchors, items));
  return FindSnapshot(bytes);
}

TEST(Snapshot, HoldsCollectionsWithoutAnchorsAndItemsWithoutLabels) {
  PublicParameters parameters = *MakeParametersWithoutAnchors(
      "00000000-0000-4000-8000-000000000000", "vectors", Metric::kEuclidean);
  EXPECT_THAT(CopySnapshot(parameters, {}, {}), IsOk()) << "a collection without a dimension";
  EXPECT_THAT(CopySnapshot(parameters, {}, {SomeItem(0)}),
              FailsWith(kDataLoss, "holds an item of 3 features, not of 0"));
  parameters.feature_dim = kDim;
  v1::Item unlabelled = SomeItem(0);
  unlabelled.set_label(0);
  unlabelled.set_unlabelled(true);
  ASSERT_OK_AND_ASSIGN(const FoundSnapshot copied,
                       CopySnapshot(parameters, {}, {unlabelled, SomeItem(1)}));
  ASSERT_THAT(copied.items, SizeIs(2));
  EXPECT_EQ(copied.items[0].SerializeAsString(), unlabelled.SerializeAsString());
  EXPECT_EQ(copied.anchors.features.rows(), 0);
}

TEST(Snapshot, HoldsAnchorsWithoutLabels) {
  Anchors anchors = SomeAnchors();
  anchors.labels.clear();
  PublicParameters parameters = *MakePublicParameters("00000000-0000-4000-8000-000000000000",
                                                      {.alpha = 0}, anchors, {}, "vectors");
  parameters.with_encrypted = true;
  ASSERT_OK_AND_ASSIGN(const FoundSnapshot copied,
                       CopySnapshot(parameters, anchors, {SomeItem(0)}));
  EXPECT_EQ(copied.anchors.features, anchors.features);
  EXPECT_TRUE(copied.anchors.labels.empty());
  EXPECT_THAT(CopySnapshot(parameters, SomeAnchors(), {}),
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
  EXPECT_THAT(ReadAll(bytes), FailsWith(kDataLoss, "block 0 (header) says that"));
  EXPECT_THAT(ReadAll("SQLite format 3\0and so on"),
              FailsWith(kDataLoss, "block 0 (header) is not that of a snapshot"));
}

TEST(Snapshot, HandlerErrorStopsReading) {
  const std::string bytes = SnapshotOf(3);
  SnapshotHandlers handlers;
  handlers.items = [](const v1::SnapshotItems&) { return absl::InvalidArgumentError("no pear"); };
  EXPECT_THAT(ReadAll(bytes, 100, handlers), FailsWith(kDataLoss, "(items) is invalid: no pear"));
  handlers.items = [](const v1::SnapshotItems&) { return absl::ResourceExhaustedError("full"); };
  EXPECT_THAT(ReadAll(bytes, 100, handlers), FailsWith(kExhausted, "full"));
}

// Damaged and hostile snapshots.

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
  const auto refused = [&](const std::vector<std::string>& blocks, const char* message) {
    EXPECT_THAT(ReadAll(Join(bytes, blocks)), FailsWith(kDataLoss, message));
  };
  std::vector<std::string> blocks = good;
  std::swap(blocks[3], blocks[4]);
  refused(blocks, "block 4 (items) calls itself number 5");
  blocks = good;
  blocks.insert(blocks.begin() + 4, good[3]);
  refused(blocks, "block 5 (items) calls itself number 4");
  blocks = good;
  blocks.erase(blocks.begin() + 3);
  refused(blocks, "block 4 (items) calls itself number 5");
  // A block of another snapshot with the right number.
  blocks = good;
  blocks[4] = BlocksOf(SnapshotOf(40, 99'990))[4];
  refused(blocks, "block 7 (end) does not match the blocks before");
  EXPECT_THAT(ReadAll(bytes + "x"), FailsWith(kDataLoss, "block 7 (end) is followed by bytes"));
  EXPECT_THAT(ReadAll(bytes + bytes), FailsWith(kDataLoss, "block 7 (end) is followed by bytes"));
}

TEST(SnapshotDamage, HostileBlockIsNamed) {
  const std::string bytes = SnapshotOf(3);
  const std::vector<std::string> good = BlocksOf(bytes);
  const auto body = [&](int block) { return good[block].substr(9, good[block].size() - 25); };
  const auto refused = [&](const std::vector<std::string>& blocks, const char* message) {
    EXPECT_THAT(ReadAll(Join(bytes, blocks)), FailsWith(kDataLoss, message));
  };
  refused({good[0], good[1], Block(4, 3, body(3))},
          "block 3 (end) counts 3 items in 4 blocks, but there are 0");
  refused({good[0], Block(3, 2, body(2))}, "block 2 (items) follows 0 anchors of 8");
  refused({Block(2, 1, body(1))}, "block 1 (anchors) is out of place");
  refused({good[0], Block(1, 2, body(0))}, "block 2 (collection) is out of place");
  refused({good[0], good[1], Block(2, 3, body(1))}, "block 3 (anchors) is one too many");
  refused({good[0], good[1], good[2], Block(3, 4, body(2))}, "block 4 (items) holds item 6 of 3");
  refused({good[0], good[1], Block(3, 3, "")}, "block 3 (items) holds item 0 of 3");
  refused({good[0], good[1], Block(3, 3, "\xff\xff")}, "block 3 (items) cannot be parsed");
  refused({Block(9, 1, "")}, "block 1 (of unknown type 9)");

  v1::SnapshotItems items;
  for (const int number : {1, 0, 2}) *items.add_items() = SomeItem(number);
  refused({good[0], good[1], Block(3, 3, items.SerializeAsString())},
          "block 3 (items) holds items out of the order of their ids");
  items.Clear();
  *items.add_items() = SomeItem(0);
  items.mutable_items(0)->add_features(1);
  refused({good[0], good[1], Block(3, 3, items.SerializeAsString())},
          "block 3 (items) holds an item of 4 features, not of 3");

  v1::SnapshotAnchors anchors;
  ASSERT_TRUE(anchors.ParseFromString(body(1)));
  anchors.set_labels(0, 2);
  refused({good[0], Block(2, 2, anchors.SerializeAsString())},
          "block 2 (anchors) ends anchors that do not match their digest");
  anchors.add_labels(2);
  refused({good[0], Block(2, 2, anchors.SerializeAsString())},
          "block 2 (anchors) does not have the shape");
  anchors.mutable_features()->set_rows(UINT32_MAX);  // RESOURCE_EXHAUSTED in other messages
  refused({good[0], Block(2, 2, anchors.SerializeAsString())},
          "block 2 (anchors) is invalid: anchors is 4294967295 x 3");
  v1::SnapshotCollection head = HeadOf(SomeAnchors(), 3);
  head.mutable_parameters()->mutable_settings()->set_embedding_dim(0);
  refused({Block(1, 1, head.SerializeAsString())},
          "block 1 (collection) is invalid: embedding_dim");
}

TEST(SnapshotDamage, HostileLengthIsRejectedBeforeAllocation) {
  std::string bytes = SnapshotOf(3).substr(0, kHeader + 9);
  for (int i = 5; i < 9; ++i) bytes[kHeader + i] = '\xff';
  EXPECT_THAT(ReadAll(bytes), FailsWith(kDataLoss, "block 1 (collection) claims 4294967295"));
}

}  // namespace
}  // namespace privatemail::testing

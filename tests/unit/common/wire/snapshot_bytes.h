// Small snapshots, and a second implementation of the block format documented in snapshot.h.
#ifndef PRIVATEMAIL_TESTS_UNIT_COMMON_WIRE_SNAPSHOT_BYTES_H_
#define PRIVATEMAIL_TESTS_UNIT_COMMON_WIRE_SNAPSHOT_BYTES_H_

#include <openssl/sha.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/proto_conversions.h"
#include "common/wire/snapshot.h"
#include "tests/testing/matchers.h"

namespace privatemail::testing {

inline constexpr int kDim = 3;

inline Anchors SomeAnchors() {
  Anchors anchors;
  anchors.features.resize(8, kDim);
  for (int i = 0; i < anchors.features.size(); ++i) {
    anchors.features.data()[i] = static_cast<float>(1 + i * i % 7);
  }
  anchors.labels = {1, 2, 1, 2, 1, 2, 1, 2};
  return anchors;
}

inline v1::Item SomeItem(int number, size_t payload_bytes = 0) {
  v1::Item item;
  item.set_id(absl::StrCat("item-", 100000 + number));
  item.set_label(1 + number % 2);
  for (int i = 0; i < kDim; ++i) item.add_features(static_cast<float>(number + i + 1));
  if (payload_bytes > 0) item.set_payload("\"" + std::string(payload_bytes, 'x') + "\"");
  return item;
}

inline v1::SnapshotCollection HeadOf(const Anchors& anchors, uint64_t items) {
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

inline std::string SnapshotOf(int items, size_t payload_bytes = 0) {
  const Anchors anchors = SomeAnchors();
  std::string bytes;
  SnapshotWriter writer([&](absl::string_view block) {
    bytes.append(block.data(), block.size());
    return absl::OkStatus();
  });
  EXPECT_THAT(writer.Begin(HeadOf(anchors, static_cast<uint64_t>(items)), anchors), IsOk());
  for (int i = 0; i < items; ++i) EXPECT_THAT(writer.Add(SomeItem(i, payload_bytes)), IsOk());
  EXPECT_THAT(writer.Finish(), IsOk());
  return bytes;
}

// Reads in pieces of `piece` bytes.
inline absl::Status ReadAll(absl::string_view bytes, size_t piece = 1 << 16,
                            SnapshotHandlers handlers = {}) {
  SnapshotReader reader(std::move(handlers));
  for (size_t first = 0; first < bytes.size(); first += piece) {
    if (!reader.Read(bytes.substr(first, piece)).ok()) break;  // Finish returns the same status
  }
  return reader.Finish();
}

inline uint32_t LittleEndian(absl::string_view bytes, size_t at) {
  return static_cast<uint32_t>(
      static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1]) << 8 |
      static_cast<uint8_t>(bytes[at + 2]) << 16 | static_cast<uint8_t>(bytes[at + 3]) << 24);
}

inline constexpr size_t kHeader = 12;

// The blocks after the header.
inline std::vector<std::string> BlocksOf(absl::string_view bytes) {
  std::vector<std::string> blocks;
  for (size_t at = kHeader; at < bytes.size();) {
    const size_t length = 9 + LittleEndian(bytes, at + 5) + 16;
    blocks.emplace_back(bytes.substr(at, length));
    at += length;
  }
  return blocks;
}

inline std::string Join(absl::string_view bytes, const std::vector<std::string>& blocks) {
  std::string joined(bytes.substr(0, kHeader));
  for (const std::string& block : blocks) joined += block;
  return joined;
}

// A well-formed block with any body.
inline std::string Block(uint8_t type, uint32_t number, const std::string& body) {
  std::string block(1, static_cast<char>(type));
  for (const uint32_t value : {number, static_cast<uint32_t>(body.size())}) {
    for (int i = 0; i < 4; ++i) block.push_back(static_cast<char>(value >> (8 * i)));
  }
  block += body;
  unsigned char digest[32];
  SHA256(reinterpret_cast<const unsigned char*>(block.data()), block.size(), digest);
  return block.append(reinterpret_cast<const char*>(digest), 16);
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_COMMON_WIRE_SNAPSHOT_BYTES_H_

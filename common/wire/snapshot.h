// Snapshots of a collection: byte format, writer and reader.
//
// A snapshot holds the gallery in the clear. Integers are unsigned and little-endian.
//
//   header, 12 bytes
//     0   8  89 50 4d 53 4e 41 50 0a  ("\x89PMSNAP\n")
//     8   4  version of the format: 1
//   blocks, one after the other
//     0   1  type: 1 collection, 2 anchors, 3 items, 4 end
//     1   4  number of the block, from 1
//     5   4  length L of the body, at most kMaxSnapshotBlockBytes
//     9   L  body, a serialised message of privatemail/v1/snapshot.proto:
//            SnapshotCollection, SnapshotAnchors, SnapshotItems, SnapshotEnd
//   9+L  16  the first 16 bytes of SHA-256 over the 9+L bytes before them
//
// Order of blocks:
// - one collection block
// - anchors blocks with parameters.anchor_count anchors in all, matching parameters.anchor_digest;
//   none without anchors
// - items blocks with as many items as the collection block says, ids ascending by bytes overall
// - one end block with all counts and SHA-256 over every byte before it; nothing follows
// A flipped bit is detected at its block; a missing, repeated, misplaced or foreign block at the
// next one. Checksums detect damage but do not authenticate the file.
#ifndef PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_
#define PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/digests.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/snapshot.pb.h"

namespace privatemail {

// Maximum body. A single item may take 64 MiB, the size of an upload message; the first block may
// hold a codebook of at most 1/39 of the anchors' size; others end after about kSnapshotBlockBytes.
inline constexpr size_t kMaxSnapshotBlockBytes = size_t{65} << 20;
inline constexpr size_t kSnapshotBlockBytes = size_t{1} << 20;

// Bytes of a snapshot in one message; fits the smallest max_message_bytes.
inline constexpr size_t kSnapshotPieceBytes = size_t{60} << 10;

// Writes a snapshot. Not thread-safe. Buffers one block.
class SnapshotWriter {
 public:
  // Receives the bytes in order, one block a call; its errors are returned unchanged.
  using Emit = std::function<absl::Status(absl::string_view)>;
  explicit SnapshotWriter(Emit emit) : emit_(std::move(emit)) {}

  // Call once, first. head.items(): the number of items that will be added.
  absl::Status Begin(const v1::SnapshotCollection& head, const Anchors& anchors);
  // In ascending order of ids. RESOURCE_EXHAUSTED: the item exceeds kMaxSnapshotBlockBytes.
  absl::Status Add(v1::Item item);
  // Call once, last. INTERNAL: fewer or more items were added than announced.
  absl::Status Finish();

 private:
  absl::Status WriteAnchors(const Anchors& anchors);
  absl::Status WriteItems();
  absl::Status WriteBlock(uint8_t type, const google::protobuf::MessageLite& body);

  Emit emit_;
  Sha256 all_;
  v1::SnapshotItems items_;  // not yet written
  size_t item_bytes_ = 0;    // of items_
  uint64_t announced_ = 0;
  v1::SnapshotEnd totals_;
};

// Callbacks for blocks; empty ones are skipped. INVALID_ARGUMENT from a callback becomes DATA_LOSS
// naming the block; other errors are returned unchanged.
struct SnapshotHandlers {
  std::function<absl::Status(const v1::SnapshotCollection&, PublicParameters)> collection;
  std::function<absl::Status(const Anchors&)> anchors;   // some rows
  std::function<absl::Status(v1::SnapshotItems)> items;  // with feature_dim values each
};

// Reads a snapshot from untrusted bytes in pieces of any size. Not thread-safe.
// - Buffers one block; lengths are checked before allocation, and memory grows with the bytes that
//   arrived, not with announced lengths.
// - Every failure is DATA_LOSS ("block 17 (items) does not match its checksum") and is returned by
//   all later calls. The caller adds the name of the file.
class SnapshotReader {
 public:
  explicit SnapshotReader(SnapshotHandlers handlers = {}) : handlers_(std::move(handlers)) {}

  absl::Status Read(absl::string_view piece);
  // Call at the end of the bytes. The snapshot is valid only if this returns OK.
  absl::Status Finish();

  // The collection block; empty before it.
  const v1::SnapshotCollection& head() const { return head_; }
  // Counts so far.
  uint64_t items() const { return totals_.items(); }
  uint64_t anchors() const { return totals_.anchors(); }

 private:
  enum class Part { kHeader, kHead, kBody, kDone };

  absl::Status Append(absl::string_view piece);
  absl::Status TakePart();
  absl::Status TakeHeader();
  absl::Status TakeHead();
  absl::Status TakeBlock();
  absl::Status CheckOrder() const;
  absl::Status TakeCollection(absl::string_view body);
  absl::Status TakeAnchors(absl::string_view body);
  absl::Status TakeItems(absl::string_view body);
  absl::Status CheckItems(const v1::SnapshotItems& items) const;
  absl::Status TakeEnd(absl::string_view body) const;
  // Errors of the current block.
  absl::Status Damaged(absl::string_view what) const;
  absl::Status Decoded(const absl::Status& status) const;  // any error of decoding is damage
  absl::Status Handled(const absl::Status& status) const;
  absl::Status Truncated() const;

  SnapshotHandlers handlers_;
  absl::Status failure_;
  Part part_ = Part::kHeader;
  size_t wanted_ = 12;  // bytes of block_ that complete the part
  std::string block_;   // the header, or the current block from its first byte on
  uint8_t type_ = 0;    // of the current block
  Sha256 all_;          // over the blocks before it
  Sha256 anchor_rows_;
  v1::SnapshotCollection head_;
  v1::SnapshotEnd totals_;  // so far; blocks: number of the current block
  std::string last_id_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_

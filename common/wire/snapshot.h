// A collection as a stream of bytes, such as a file: the format, its writer and its reader.
//
// A snapshot holds the operator's gallery in the clear. Integers are unsigned and little-endian.
//
//   header, 12 bytes
//     0   8  89 50 4d 53 4e 41 50 0a  ("\x89PMSNAP\n")
//     8   4  version of the format: 1
//   blocks, one after the other
//     0   1  type: 1 collection, 2 anchors, 3 items, 4 end
//     1   4  number: 1 for the first block, then one more each
//     5   4  length L of the body, at most kMaxSnapshotBlockBytes
//     9   L  body, a serialised message of privatemail/v1/snapshot.proto:
//            SnapshotCollection, SnapshotAnchors, SnapshotItems, SnapshotEnd
//   9+L  16  the first 16 bytes of SHA-256 over the 9+L bytes before them
//
// One collection block; anchors blocks until there are parameters.anchor_count of them, which then
// match parameters.anchor_digest; items blocks, their ids ascending by bytes over all of them,
// until there are as many as the collection block says; one end block with the counts of all and
// SHA-256 over every byte before it; nothing after it. So a flipped bit is noticed at its block,
// and a block that is missing, repeated, out of place or of another file at the next one.
//
// The checksums find damage. They do not prove who wrote the file: keep it where you keep the data.
#ifndef PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_
#define PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"
#include "common/base/sha256.h"
#include "privatemail/v1/snapshot.pb.h"

namespace privatemail {

// Largest body that is read or written. An item alone may take as much as a message of an upload,
// 64 MiB; the first block has a codebook where the collection has one, at most a 39th of the
// anchors; all others end after about kSnapshotBlockBytes.
inline constexpr size_t kMaxSnapshotBlockBytes = size_t{65} << 20;
inline constexpr size_t kSnapshotBlockBytes = size_t{1} << 20;

// How much of a snapshot one message carries: what the smallest max_message_bytes lets through.
inline constexpr size_t kSnapshotPieceBytes = size_t{60} << 10;

// Not thread-safe. Holds one block at a time.
class SnapshotWriter {
 public:
  // `emit` gets the bytes in order, a block at a time; its errors pass through unchanged.
  using Emit = std::function<absl::Status(absl::string_view)>;
  explicit SnapshotWriter(Emit emit) : emit_(std::move(emit)) {}

  // Once, first. `head` says how many items will be added.
  absl::Status Begin(const v1::SnapshotCollection& head, const Anchors& anchors);
  // In ascending order of ids. RESOURCE_EXHAUSTED: the item alone exceeds kMaxSnapshotBlockBytes.
  absl::Status Add(v1::Item item);
  // Once, last. INTERNAL: not as many items as announced were added.
  absl::Status Finish();

 private:
  absl::Status WriteAnchors(const Anchors& anchors);
  absl::Status WriteItems();
  absl::Status WriteBlock(uint8_t type, const google::protobuf::MessageLite& body);

  Emit emit_;
  Sha256 all_;
  v1::SnapshotItems items_;  // that wait to be written
  size_t item_bytes_ = 0;    // of them
  uint64_t announced_ = 0;
  v1::SnapshotEnd totals_;
};

// What is done with the blocks as they come; an empty one does nothing. INVALID_ARGUMENT of theirs
// becomes DATA_LOSS that names the block; other errors pass through unchanged.
struct SnapshotHandlers {
  std::function<absl::Status(v1::SnapshotCollection)> collection;
  std::function<absl::Status(v1::SnapshotAnchors)> anchors;  // as checked as FromProto does
  std::function<absl::Status(v1::SnapshotItems)> items;      // feature_dim values each
};

// Reads bytes that come in pieces, cut anywhere, from wherever: any bytes may come. Not
// thread-safe. Holds one block at a time; a length is checked before anything is allocated for it,
// and what is allocated grows with the bytes that have come, not with those that were promised.
// Every failure is DATA_LOSS, as "block 17 (items) does not match its checksum"; the caller adds
// the name of the file. After a failure every call returns it again.
class SnapshotReader {
 public:
  explicit SnapshotReader(SnapshotHandlers handlers) : handlers_(std::move(handlers)) {}

  absl::Status Read(absl::string_view piece);
  // No more bytes will come. Nothing of a snapshot may be relied on before this returns OK.
  absl::Status Finish();

  // Of the collection block, 0 before it; for progress.
  uint64_t announced_items() const { return head_.items(); }
  // Read so far.
  uint64_t items() const { return totals_.items(); }
  uint64_t anchors() const { return totals_.anchors(); }

 private:
  enum class Part { kHeader, kHead, kBody, kNothing };

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
  // Of the block at hand.
  absl::Status Damaged(absl::string_view what) const;
  absl::Status Handled(const absl::Status& status) const;
  absl::Status Truncated() const;

  SnapshotHandlers handlers_;
  absl::Status failure_;
  Part part_ = Part::kHeader;
  size_t wanted_ = 12;  // bytes of `block_` with which the part is complete
  std::string block_;   // the header, or the block at hand from its first byte on
  uint8_t type_ = 0;    // of the block at hand
  Sha256 all_;          // over the blocks before it
  Sha256 anchor_rows_;
  v1::SnapshotCollection head_;
  v1::SnapshotEnd totals_;  // so far; blocks: the number of the one at hand
  std::string last_id_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_H_

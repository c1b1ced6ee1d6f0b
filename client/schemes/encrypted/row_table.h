// The row table of a collection: ids, norms, labels and payloads of the rows that encrypted
// searches score. The same for every searcher; in blocks that are known by their digest.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ROW_TABLE_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ROW_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/items/item_checks.h"
#include "common/items/packed_texts.h"

namespace privatemail::client {

inline constexpr size_t kBlockDigestBytes = 32;  // SHA-256

// RESOURCE_EXHAUSTED: a block of this content may take more when it is parsed.
absl::Status CheckBlockMemory(absl::string_view content, int64_t max_memory);

// Up to 2,048 rows. Public. Immutable.
class TableBlock {
 public:
  // content: a serialised v1.RowTableBlock of an untrusted server. max_memory: bytes that it may
  // take when it is parsed.
  // DATA_LOSS naming the field: it is malformed; no row or too many; another number of norms or
  //   labels than of ids; an id that is not UTF-8 or too long; a norm that is negative or not
  //   finite; a label out of range.
  // RESOURCE_EXHAUSTED: max_memory.
  static absl::StatusOr<std::shared_ptr<const TableBlock>> Parse(absl::string_view content,
                                                                 int64_t max_memory);

  size_t rows() const { return ids_.size(); }
  uint64_t items() const { return items_; }
  absl::string_view id(size_t row) const { return ids_[row]; }  // empty: the row holds no item
  float norm(size_t row) const { return norms_[row]; }
  // Or kNoLabel (common/items/item_checks.h).
  int32_t label(size_t row) const { return labels_.empty() ? kNoLabel : labels_[row]; }

 private:
  PackedTexts ids_;
  uint64_t items_ = 0;  // rows with an id
  std::vector<float> norms_;
  std::vector<int32_t> labels_;  // none: no row has one
};

// The payloads of such a block. Public. Immutable.
class PayloadBlock {
 public:
  // content: a serialised v1.RowPayloadBlock. Otherwise as TableBlock::Parse.
  // DATA_LOSS: it is malformed, has too many rows, or a payload is not JSON.
  static absl::StatusOr<std::shared_ptr<const PayloadBlock>> Parse(absl::string_view content,
                                                                   int64_t max_memory);

  size_t rows() const { return payloads_.size(); }  // 0: no row has a payload
  absl::string_view payload(size_t row) const {
    return payloads_.size() == 0 ? absl::string_view() : payloads_[row];
  }
  int64_t longest_payload() const { return longest_; }  // bytes
  int64_t bytes() const { return bytes_; }              // of all rows

 private:
  PackedTexts payloads_;
  int64_t longest_ = 0, bytes_ = 0;
};

// All blocks of one version of a collection. Public. Immutable, cheap to copy.
class RowTable {
 public:
  using TableBlocks = std::vector<std::shared_ptr<const TableBlock>>;
  using PayloadBlocks = std::vector<std::shared_ptr<const PayloadBlock>>;

  // payloads: one for each block, or none.
  // DATA_LOSS naming the block: no block, a block before the last one that is not full, or payloads
  //   of another number of rows.
  static absl::StatusOr<RowTable> Create(TableBlocks blocks, PayloadBlocks payloads);

  const TableBlocks& blocks() const { return blocks_; }
  absl::string_view payload(size_t block, size_t row) const {
    return payloads_.empty() ? absl::string_view() : payloads_[block]->payload(row);
  }
  uint64_t CountItems() const;      // rows that hold one
  int64_t longest_payload() const;  // bytes
  int64_t payload_bytes() const;    // of all rows

 private:
  RowTable(TableBlocks blocks, PayloadBlocks payloads)
      : blocks_(std::move(blocks)), payloads_(std::move(payloads)) {}

  TableBlocks blocks_;
  PayloadBlocks payloads_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ROW_TABLE_H_

// The rows that encrypted queries are scored against, what searchers learn of them, and the writer
// of their versions.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_
#define PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/items/item_checks.h"
#include "common/items/packed_texts.h"
#include "common/lattice/scores.h"
#include "server/store/types.h"

namespace privatemail::server {

// A row without its values. An empty row is EncryptedRow().
struct EncryptedRow {
  std::string id;
  float norm = 0;
  int32_t label = kNoLabel;  // kNoLabel: the item has none
  std::string payload;

  bool operator==(const EncryptedRow&) const = default;
};

// Up to lattice::kDegree rows, of which some may be empty. Server side. Immutable.
//
//   per row                                        bytes
//   int16 values, also of rows beyond size()       2 x dimensions
//   id                                             8 and its length
//   norm; label, unless no row of the block has one     4; 4
//   payload, unless no row of the block has one    8 and its length
class EncryptedBlock {
 public:
  // values: kDegree x dimensions, as lattice::Evaluator::Score takes them; row r is at place
  // ReverseBits(r). An empty row has zeros.
  EncryptedBlock(std::unique_ptr<const int16_t[]> values, int64_t dimensions,
                 absl::Span<const EncryptedRow> rows);

  const int16_t* values() const { return values_.get(); }
  const int16_t* RowValues(size_t row) const;
  size_t size() const { return norms_.size(); }  // rows, empty ones included
  absl::string_view IdOf(size_t row) const { return ids_[row]; }
  EncryptedRow RowAt(size_t row) const;
  absl::Span<const float> norms() const { return norms_; }
  absl::Span<const int32_t> labels() const { return labels_; }
  const PackedTexts& payloads() const { return payloads_; }

  // Sizes and SHA-256 of the two parts that searchers get, in the form in which they are sent.
  struct SentForm {
    std::string table_digest, payload_digest;
    size_t table_bytes = 0, payload_bytes = 0;
  };
  // Kept here because it is needed as long as the block. The first caller makes it, others wait.
  const SentForm& Sent(absl::FunctionRef<SentForm()> make) const;

  int64_t memory() const;

 private:
  const std::unique_ptr<const int16_t[]> values_;
  const int64_t dimensions_;
  PackedTexts ids_;
  std::vector<float> norms_;
  std::vector<int32_t> labels_;  // none if no row has one
  PackedTexts payloads_;         // none if no row has one
  mutable std::once_flag has_sent_form_;
  mutable SentForm sent_form_;
};

// All rows of a collection at one moment. Server side; holds nothing of searchers. Immutable:
// versions share the blocks that did not change.
struct EncryptedRows {
  int64_t dimensions = 0;        // 0: no item ever came
  int64_t collection = 0;        // its key in the store
  uint64_t items_version = 0;    // of the collection
  uint64_t changed_version = 0;  // from it to items_version the rows are the same
  int64_t items = 0;
  int64_t rows = 0;  // of all blocks, empty ones included; each block but the last one is full
  std::vector<std::shared_ptr<const EncryptedBlock>> blocks;
  int64_t memory = 0;  // bytes, with the id index of the writer
};

// The bytes that so many items take at least: with empty ids, and no payloads.
int64_t MinEncryptedMemory(int64_t items, int64_t dimensions);

// Applies changes of items and publishes immutable versions, which share the blocks that did not
// change; a batch copies only those that it changes.
//   - An item keeps its row. A new one takes the first empty row, or else a new row at the end.
//   - A deletion empties the row: zeros, no id. Empty rows at the end are dropped.
//   - Publish moves the last items into empty rows once more than a fifth of the rows and a block's
//     worth of them are empty.
// Takes about 12 bytes an item beside the versions. After an exception (no memory) it must not be
// used any more. Server side. Not thread-safe.
class EncryptedRowsWriter {
 public:
  EncryptedRowsWriter();
  ~EncryptedRowsWriter();

  // Inserts or replaces by id. An item that does not change copies nothing. The first item sets the
  // dimension of all, which the caller ensures. item: as CheckItem accepts it.
  void Put(const Item& item);
  // False: there is no such item.
  bool Erase(absl::string_view id);

  // From now on the last block has kDegree rows, too, empty ones at its end, so that the blocks of
  // other shards can follow.
  void PadBlocks() { pads_ = true; }

  // Until EndReload items are recorded that are put; EndReload erases all others.
  void BeginReload();
  void EndReload();

  // collection: its key. items_version: changes up to it have been applied.
  std::shared_ptr<const EncryptedRows> Publish(int64_t collection, uint64_t items_version);

  int64_t items() const { return static_cast<int64_t>(index_.size()); }
  // Bytes of the version that Publish would return, with the id index; those of blocks that changed
  // since the last version are those of the last version.
  int64_t memory() const;
  // The bytes that these items add to memory(), approximately.
  int64_t MemoryToPut(absl::Span<const Item> items) const;

 private:
  // A block that can be changed.
  struct Draft {
    std::unique_ptr<int16_t[]> values;
    std::vector<EncryptedRow> rows = std::vector<EncryptedRow>(lattice::kDegree);
    int64_t memory = 0;  // of the columns, when the draft was made
  };
  struct Slot {  // exactly one is set
    std::shared_ptr<const EncryptedBlock> block;
    std::unique_ptr<Draft> draft;
  };
  // Ids are compared in their rows, so that the index holds row numbers alone.
  struct HashId {
    using is_transparent = void;
    const EncryptedRowsWriter* rows;
    size_t operator()(absl::string_view id) const;
    size_t operator()(uint32_t row) const { return (*this)(rows->IdOf(row)); }
  };
  struct EqualIds {
    using is_transparent = void;
    const EncryptedRowsWriter* rows;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t row, absl::string_view id) const { return rows->IdOf(row) == id; }
    bool operator()(absl::string_view id, uint32_t row) const { return rows->IdOf(row) == id; }
  };

  absl::string_view IdOf(uint32_t row) const;
  // The first empty row.
  uint32_t TakeRow();
  Draft& DraftOf(size_t block);
  void Freeze(size_t block);
  // The row's values in the draft of its block.
  int16_t* DraftValues(uint32_t row);
  void Clear(uint32_t row);
  void Compact();
  void DropEmptyEnd();

  int64_t dimensions_ = 0;
  std::vector<Slot> slots_;
  uint32_t rows_ = 0;  // empty ones included; all later ones are empty
  absl::flat_hash_set<uint32_t, HashId, EqualIds> index_;
  // Perhaps empty rows; some may have been taken or dropped since.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> empty_;
  bool pads_ = false;
  std::vector<std::shared_ptr<const EncryptedBlock>> published_;  // the last version's blocks
  uint64_t changed_version_ = 0;                                  // since which it has them
  bool reloading_ = false;
  std::vector<bool> seen_;  // rows that were put since BeginReload
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_

// Makes the versions of a collection's encrypted rows.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_WRITER_H_
#define PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/encrypted_rows.h"
#include "server/store/types.h"

namespace privatemail::server {

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
    std::vector<std::string> ids;  // kDegree each
    std::vector<float> norms;
    std::vector<int32_t> labels;
    std::vector<std::string> payloads;
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
  bool IsEqual(uint32_t row, const Item& item, const std::vector<int16_t>& values,
               float norm) const;
  // The first empty row.
  uint32_t TakeRow();
  Draft& DraftOf(size_t block);
  void Freeze(size_t block);
  // Writes the values of a row, or zeros if `values` is null.
  void SetValues(uint32_t row, const int16_t* values);
  void Clear(uint32_t row);
  void Compact();
  void DropEmptyEnd();

  int64_t dimensions_ = 0;
  std::vector<Slot> slots_;
  uint32_t rows_ = 0;  // empty ones included; all later ones are empty
  absl::flat_hash_set<uint32_t, HashId, EqualIds> index_;
  // Perhaps empty rows; some may have been taken or dropped since.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> empty_;
  bool reloading_ = false;
  std::vector<bool> seen_;  // rows that were put since BeginReload
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_WRITER_H_

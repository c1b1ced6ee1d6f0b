// The rows that encrypted queries are scored against, and what searchers learn of them.
#ifndef PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_
#define PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/items/packed_texts.h"
#include "common/lattice/scores.h"

namespace privatemail::server {

// Up to lattice::kDegree rows, of which some may be empty. Server side. Immutable.
//
//   per row                                        bytes
//   int16 values, also of rows beyond size()       2 x dimensions
//   id                                             8 and its length
//   norm; label, unless no row of the block has one     4; 4
//   payload, unless no row of the block has one    8 and its length
class EncryptedBlock {
 public:
  struct Columns {
    PackedTexts ids;              // empty: the row holds no item
    std::vector<float> norms;     // 0 for an empty row
    std::vector<int32_t> labels;  // kNoLabel for a row without one; none if no row has one
    PackedTexts payloads;         // none if no row has one
  };
  // values: kDegree x dimensions, as lattice::Evaluator::Score takes them; row r of the columns is
  // at place ReverseBits(r). An empty row has zeros.
  EncryptedBlock(std::unique_ptr<const int16_t[]> values, int64_t dimensions, Columns columns);

  const int16_t* values() const { return values_.get(); }
  const int16_t* RowValues(size_t row) const;
  size_t size() const { return columns_.norms.size(); }  // rows, empty ones included
  absl::string_view IdOf(size_t row) const { return columns_.ids[row]; }
  float NormOf(size_t row) const { return columns_.norms[row]; }
  int32_t LabelOf(size_t row) const;
  absl::string_view PayloadOf(size_t row) const;

  // A serialised v1.RowTableBlock and v1.RowPayloadBlock, made by each call, and their SHA-256.
  std::string Table() const;
  std::string Payloads() const;
  const std::string& table_digest() const { return table_digest_; }
  const std::string& payload_digest() const { return payload_digest_; }
  size_t table_bytes() const { return table_bytes_; }
  size_t payload_bytes() const { return payload_bytes_; }

  int64_t memory() const;

 private:
  const std::unique_ptr<const int16_t[]> values_;
  const int64_t dimensions_;
  const Columns columns_;
  std::string table_digest_, payload_digest_;
  size_t table_bytes_ = 0, payload_bytes_ = 0;
};

// All rows of a collection at one moment. Server side; holds nothing of searchers. Immutable:
// versions share the blocks that did not change.
struct EncryptedRows {
  int64_t dimensions = 0;      // 0: no item ever came
  int64_t collection = 0;      // its key in the store
  uint64_t items_version = 0;  // of the collection
  int64_t items = 0;
  int64_t rows = 0;  // of all blocks, empty ones included; each block but the last one is full
  std::vector<std::shared_ptr<const EncryptedBlock>> blocks;
  int64_t memory = 0;  // bytes, with the id index of the writer

  size_t table_bytes() const;
  size_t payload_bytes() const;
};

// The bytes that so many items take at least: with empty ids, and no payloads.
int64_t MinEncryptedMemory(int64_t items, int64_t dimensions);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_ENCRYPTED_ROWS_H_

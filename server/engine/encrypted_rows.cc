#include "server/engine/encrypted_rows.h"

#include <utility>

#include "common/base/sha256.h"
#include "common/items/item_label.h"
#include "common/lattice/modular.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::server {
namespace {

// As v1.RowTableBlock.labels.
int64_t SentLabel(int32_t label) {
  if (label == kNoLabel) return 0;
  return label >= 0 ? int64_t{label} + 1 : label;
}

}  // namespace

EncryptedBlock::EncryptedBlock(std::unique_ptr<const int16_t[]> values, int64_t dimensions,
                               Columns columns)
    : values_(std::move(values)), dimensions_(dimensions), columns_(std::move(columns)) {
  const std::string table = Table(), payloads = Payloads();
  table_digest_ = Sha256::Of(table);
  payload_digest_ = Sha256::Of(payloads);
  table_bytes_ = table.size();
  payload_bytes_ = payloads.size();
}

const int16_t* EncryptedBlock::RowValues(size_t row) const {
  return values_.get() + lattice::ReverseBits(static_cast<int>(row)) * dimensions_;
}

int32_t EncryptedBlock::LabelOf(size_t row) const {
  return columns_.labels.empty() ? kNoLabel : columns_.labels[row];
}

absl::string_view EncryptedBlock::PayloadOf(size_t row) const {
  return columns_.payloads.size() == 0 ? absl::string_view() : columns_.payloads[row];
}

std::string EncryptedBlock::Table() const {
  v1::RowTableBlock proto;
  for (size_t row = 0; row < size(); ++row) {
    const absl::string_view id = IdOf(row);
    proto.add_ids(id.data(), id.size());
  }
  proto.mutable_norms()->Assign(columns_.norms.begin(), columns_.norms.end());
  for (const int32_t label : columns_.labels) proto.add_labels(SentLabel(label));
  return proto.SerializeAsString();
}

std::string EncryptedBlock::Payloads() const {
  v1::RowPayloadBlock proto;
  for (size_t row = 0; row < columns_.payloads.size(); ++row) {
    const absl::string_view payload = columns_.payloads[row];
    proto.add_payloads(payload.data(), payload.size());
  }
  return proto.SerializeAsString();
}

int64_t EncryptedBlock::memory() const {
  return MinEncryptedMemory(1, dimensions_) + columns_.ids.memory() + columns_.payloads.memory() +
         static_cast<int64_t>(columns_.norms.capacity() * sizeof(float) +
                              columns_.labels.capacity() * sizeof(int32_t));
}

size_t EncryptedRows::table_bytes() const {
  size_t bytes = 0;
  for (const auto& block : blocks) bytes += block->table_bytes();
  return bytes;
}

size_t EncryptedRows::payload_bytes() const {
  size_t bytes = 0;
  for (const auto& block : blocks) bytes += block->payload_bytes();
  return bytes;
}

int64_t MinEncryptedMemory(int64_t items, int64_t dimensions) {
  constexpr int64_t kBlock = sizeof(EncryptedBlock) + 2 * 64;  // with digests and pointers
  return lattice::CountBlocks(items) *
         (lattice::kDegree * dimensions * static_cast<int64_t>(sizeof(int16_t)) + kBlock);
}

}  // namespace privatemail::server

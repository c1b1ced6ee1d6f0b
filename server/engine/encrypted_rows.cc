#include "server/engine/encrypted_rows.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "common/items/item_checks.h"
#include "common/items/item_code.h"
#include "common/lattice/modular.h"

namespace privatemail::server {
namespace {

using lattice::kDegree;

constexpr uint32_t kRowsOfBlock = kDegree;
// Bytes of an item in the id index: a place is a row number and a byte of control, and at least
// 7/16 of the places are in use.
constexpr int64_t kIndexBytes = (sizeof(uint32_t) + 1) * 16 / 7 + 1;
// Bytes of an item in the columns in addition to its texts: offsets of id and payload, norm and
// label.
constexpr int64_t kColumnBytes = 2 * sizeof(size_t) + sizeof(float) + sizeof(int32_t);

size_t BlockOf(uint32_t row) { return row / kRowsOfBlock; }
size_t PlaceOf(uint32_t row) { return row % kRowsOfBlock; }

// The item's row as int16, and its norm. A zero vector has a row of zeros.
std::vector<int16_t> Quantise(const Item& item, float* norm) {
  const RowVector features =
      Eigen::Map<const Eigen::RowVectorXf>(item.features.data(), std::ssize(item.features))
          .cast<double>();
  const double length = features.norm();  // squares of floats neither overflow nor vanish
  *norm =
      static_cast<float>(std::min(length, static_cast<double>(std::numeric_limits<float>::max())));
  return QuantiseUnitRow(length > 0 ? RowVector(features / length) : features);
}

PackedTexts Pack(absl::Span<const EncryptedRow> rows, std::string EncryptedRow::*text) {
  size_t bytes = 0;
  for (const EncryptedRow& row : rows) bytes += (row.*text).size();
  PackedTexts packed;
  packed.Reserve(rows.size(), bytes);
  for (const EncryptedRow& row : rows) packed.Add(row.*text);
  return packed;
}

}  // namespace

EncryptedBlock::EncryptedBlock(std::unique_ptr<const int16_t[]> values, int64_t dimensions,
                               absl::Span<const EncryptedRow> rows)
    : values_(std::move(values)),
      dimensions_(dimensions),
      ids_(Pack(rows, &EncryptedRow::id)),
      norms_(rows.size()) {
  for (size_t row = 0; row < rows.size(); ++row) norms_[row] = rows[row].norm;
  const auto has_label = [](const EncryptedRow& row) { return row.label != kNoLabel; };
  if (std::any_of(rows.begin(), rows.end(), has_label)) {
    labels_.resize(rows.size());
    for (size_t row = 0; row < rows.size(); ++row) labels_[row] = rows[row].label;
  }
  const auto has_payload = [](const EncryptedRow& row) { return !row.payload.empty(); };
  if (std::any_of(rows.begin(), rows.end(), has_payload)) {
    payloads_ = Pack(rows, &EncryptedRow::payload);
  }
}

const int16_t* EncryptedBlock::RowValues(size_t row) const {
  return values_.get() + lattice::ReverseBits(static_cast<int>(row)) * dimensions_;
}

EncryptedRow EncryptedBlock::RowAt(size_t row) const {
  return {std::string(ids_[row]), norms_[row], labels_.empty() ? kNoLabel : labels_[row],
          payloads_.size() == 0 ? "" : std::string(payloads_[row])};
}

const EncryptedBlock::SentForm& EncryptedBlock::Sent(absl::FunctionRef<SentForm()> make) const {
  std::call_once(has_sent_form_, [&] { sent_form_ = make(); });
  return sent_form_;
}

int64_t EncryptedBlock::memory() const {
  return MinEncryptedMemory(1, dimensions_) + ids_.memory() + payloads_.memory() +
         static_cast<int64_t>(norms_.capacity() * sizeof(float) +
                              labels_.capacity() * sizeof(int32_t));
}

int64_t MinEncryptedMemory(int64_t items, int64_t dimensions) {
  constexpr int64_t kBlock = sizeof(EncryptedBlock) + 2 * 64;  // with digests and pointers
  return lattice::CountBlocks(items) *
         (lattice::kDegree * dimensions * static_cast<int64_t>(sizeof(int16_t)) + kBlock);
}

EncryptedRowsWriter::EncryptedRowsWriter() : index_(0, HashId{this}, EqualIds{this}) {}

EncryptedRowsWriter::~EncryptedRowsWriter() = default;

size_t EncryptedRowsWriter::HashId::operator()(absl::string_view id) const {
  return std::hash<std::string_view>()(std::string_view(id.data(), id.size()));
}

absl::string_view EncryptedRowsWriter::IdOf(uint32_t row) const {
  const Slot& slot = slots_[BlockOf(row)];
  if (slot.draft != nullptr) return slot.draft->rows[PlaceOf(row)].id;
  return slot.block->IdOf(PlaceOf(row));
}

void EncryptedRowsWriter::Put(const Item& item) {
  if (dimensions_ == 0) dimensions_ = std::ssize(item.features);
  float norm = 0;
  const std::vector<int16_t> values = Quantise(item, &norm);
  const auto found = index_.find(absl::string_view(item.id));
  const bool is_new = found == index_.end();
  const uint32_t row = is_new ? TakeRow() : *found;
  if (reloading_) {
    if (row >= seen_.size()) seen_.resize(row + 1);
    seen_[row] = true;
  }
  EncryptedRow put{item.id, norm, item.label, item.payload};
  const size_t block = BlockOf(row), place = PlaceOf(row);
  const EncryptedBlock* const former = slots_[block].block.get();  // null: it is copied already
  if (!is_new && former != nullptr && former->RowAt(place) == put &&
      std::equal(values.begin(), values.end(), former->RowValues(place))) {
    return;
  }
  std::copy(values.begin(), values.end(), DraftValues(row));
  DraftOf(block).rows[place] = std::move(put);
  if (is_new) index_.insert(row);
}

bool EncryptedRowsWriter::Erase(absl::string_view id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return false;
  const uint32_t row = *found;
  index_.erase(found);
  Clear(row);
  empty_.push(row);
  return true;
}

void EncryptedRowsWriter::BeginReload() {
  reloading_ = true;
  seen_.assign(rows_, false);
}

void EncryptedRowsWriter::EndReload() {
  reloading_ = false;
  for (uint32_t row = 0; row < rows_; ++row) {
    const absl::string_view id = IdOf(row);
    if (id.empty() || (row < seen_.size() && seen_[row])) continue;
    Erase(std::string(id));
  }
  seen_ = {};
}

uint32_t EncryptedRowsWriter::TakeRow() {
  while (!empty_.empty()) {
    const uint32_t row = empty_.top();
    empty_.pop();
    if (row < rows_ && IdOf(row).empty()) return row;
  }
  const uint32_t row = rows_++;
  if (BlockOf(row) == slots_.size()) {
    if (!slots_.empty()) Freeze(slots_.size() - 1);  // it is full: a draft takes more memory
    slots_.push_back({nullptr, std::make_unique<Draft>()});
    slots_.back().draft->values =
        std::make_unique<int16_t[]>(static_cast<size_t>(kDegree * dimensions_));
  }
  return row;
}

EncryptedRowsWriter::Draft& EncryptedRowsWriter::DraftOf(size_t block) {
  Slot& slot = slots_[block];
  if (slot.draft != nullptr) return *slot.draft;
  const EncryptedBlock& former = *slot.block;
  auto draft = std::make_unique<Draft>();
  const auto values = static_cast<size_t>(kDegree * dimensions_);
  draft->values = std::make_unique_for_overwrite<int16_t[]>(values);
  std::copy_n(former.values(), values, draft->values.get());
  for (size_t place = 0; place < former.size(); ++place) draft->rows[place] = former.RowAt(place);
  draft->memory = former.memory();
  slot.draft = std::move(draft);
  slot.block = nullptr;
  return *slot.draft;
}

void EncryptedRowsWriter::Freeze(size_t block) {
  Slot& slot = slots_[block];
  if (slot.draft == nullptr) return;
  Draft& draft = *slot.draft;
  const size_t count =
      pads_ ? kRowsOfBlock : std::min<size_t>(kRowsOfBlock, rows_ - block * kRowsOfBlock);
  slot.block = std::make_shared<const EncryptedBlock>(std::move(draft.values), dimensions_,
                                                      absl::MakeConstSpan(draft.rows).first(count));
  slot.draft = nullptr;
}

int16_t* EncryptedRowsWriter::DraftValues(uint32_t row) {
  return DraftOf(BlockOf(row)).values.get() +
         lattice::ReverseBits(static_cast<int>(PlaceOf(row))) * dimensions_;
}

void EncryptedRowsWriter::Clear(uint32_t row) {
  std::fill_n(DraftValues(row), dimensions_, int16_t{0});
  DraftOf(BlockOf(row)).rows[PlaceOf(row)] = {};
}

void EncryptedRowsWriter::DropEmptyEnd() {
  while (rows_ > 0 && IdOf(rows_ - 1).empty()) --rows_;
  slots_.resize((rows_ + kRowsOfBlock - 1) / kRowsOfBlock);
  if (slots_.empty() || slots_.back().draft != nullptr || pads_) return;
  if (slots_.back().block->size() != PlaceOf(rows_ - 1) + 1) DraftOf(slots_.size() - 1);
}

void EncryptedRowsWriter::Compact() {
  const uint32_t items = static_cast<uint32_t>(index_.size());
  if (rows_ - items <= kRowsOfBlock || rows_ - items <= rows_ / 5) return;
  uint32_t last = rows_;
  for (uint32_t row = 0; row < items; ++row) {
    if (!IdOf(row).empty()) continue;
    do --last;
    while (IdOf(last).empty());
    index_.erase(index_.find(last));
    std::copy_n(DraftValues(last), dimensions_, DraftValues(row));
    DraftOf(BlockOf(row)).rows[PlaceOf(row)] =
        std::move(DraftOf(BlockOf(last)).rows[PlaceOf(last)]);
    Clear(last);
    index_.insert(row);
  }
  empty_ = {};
}

std::shared_ptr<const EncryptedRows> EncryptedRowsWriter::Publish(int64_t collection,
                                                                  uint64_t items_version) {
  Compact();
  DropEmptyEnd();
  auto rows = std::make_shared<EncryptedRows>();
  for (size_t block = 0; block < slots_.size(); ++block) {
    Freeze(block);
    rows->blocks.push_back(slots_[block].block);
  }
  if (rows->blocks != published_) {
    published_ = rows->blocks;
    changed_version_ = items_version;
  }
  rows->changed_version = changed_version_;
  rows->dimensions = dimensions_;
  rows->collection = collection;
  rows->items_version = items_version;
  rows->items = items();
  rows->rows = pads_ ? std::ssize(slots_) * kRowsOfBlock : rows_;
  rows->memory = memory();
  return rows;
}

int64_t EncryptedRowsWriter::memory() const {
  int64_t bytes = items() * kIndexBytes + static_cast<int64_t>(empty_.size() * sizeof(uint32_t));
  for (const Slot& slot : slots_) {
    if (slot.block != nullptr) {
      bytes += slot.block->memory();
    } else {
      bytes +=
          std::max(slot.draft->memory, MinEncryptedMemory(1, dimensions_) + kDegree * kColumnBytes);
    }
  }
  return bytes;
}

int64_t EncryptedRowsWriter::MemoryToPut(absl::Span<const Item> items) const {
  int64_t bytes = 0, added = 0;
  for (const Item& item : items) {
    bytes += std::ssize(item.payload);
    if (index_.contains(absl::string_view(item.id))) continue;
    bytes += std::ssize(item.id) + kColumnBytes + kIndexBytes;
    ++added;
  }
  const int64_t dimensions =
      dimensions_ > 0 || items.empty() ? dimensions_ : std::ssize(items.front().features);
  // New items fill the last block and empty rows first.
  const int64_t free = std::ssize(slots_) * kDegree - static_cast<int64_t>(index_.size());
  return bytes + MinEncryptedMemory(std::max<int64_t>(0, added - free), dimensions);
}

}  // namespace privatemail::server

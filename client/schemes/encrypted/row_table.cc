#include "client/schemes/encrypted/row_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/memory_budget.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/lattice/scores.h"
#include "common/wire/wire_format.h"

namespace privatemail::client {
namespace {

constexpr size_t kBlockRows = lattice::kDegree;

absl::Status Malformed(const char* message) {
  return absl::DataLossError(
      absl::StrCat("content must be a privatemail.v1.", message, ", but is not"));
}

// name: of the field.
absl::Status CheckCount(const char* name, size_t count, size_t rows, bool optional) {
  if (count == rows || (optional && count == 0)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(name, " must have ", optional ? "no entry or " : "", rows,
                                          " entries, one for each row, but have ", count));
}

absl::Status CheckRows(size_t rows, size_t least) {
  if (rows >= least && rows <= kBlockRows) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("rows must be between ", least, " and ", kBlockRows, ", but are ", rows));
}

absl::Status InRow(size_t row, absl::string_view message) {
  return absl::DataLossError(absl::StrCat("row ", row, ": ", message));
}

}  // namespace

absl::Status CheckBlockMemory(absl::string_view content, int64_t max_memory) {
  constexpr size_t kRowBytes = 32;  // of a row's numbers
  return CheckMemory(static_cast<double>(content.size() + kBlockRows * kRowBytes),
                     "a block of rows", max_memory);
}

// Rows beyond those of a block are counted, not kept.
absl::StatusOr<std::shared_ptr<const TableBlock>> TableBlock::Parse(absl::string_view content,
                                                                    int64_t max_memory) {
  PM_RETURN_IF_ERROR(CheckBlockMemory(content, max_memory));
  auto block = std::make_shared<TableBlock>();
  block->ids_.Reserve(0, content.size());
  size_t ids = 0, norms = 0, labels = 0;
  absl::Status wrong_id;
  std::vector<int64_t> sent;  // of labels from 0 on plus one, so that 0 means none
  WireReader message(content);
  while (message.Next()) {
    if (message.Is(1, WireReader::kBytes)) {
      const absl::string_view id = message.bytes();
      if (wrong_id.ok() && !IsUtf8(id)) wrong_id = InRow(ids, "id is not UTF-8");
      // Ranking copies and compares ids, so their lengths bound its time.
      if (wrong_id.ok() && id.size() > kMaxItemIdBytes) {
        wrong_id = InRow(ids, absl::StrCat("id must have at most ", kMaxItemIdBytes,
                                           " bytes, but has ", id.size()));
      }
      if (ids++ < kBlockRows) block->ids_.Add(id);
      if (!id.empty()) ++block->items_;
    }
    message.Elements(2, WireReader::kFixed32, [&](uint64_t value) {
      if (norms++ < kBlockRows) {
        const auto bits = static_cast<uint32_t>(value);
        std::memcpy(&block->norms_.emplace_back(), &bits, sizeof(bits));
      }
    });
    message.Elements(3, WireReader::kVarint, [&](uint64_t value) {
      // The sign is the lowest bit.
      if (labels++ < kBlockRows) sent.push_back(static_cast<int64_t>(value >> 1 ^ -(value & 1)));
    });
  }
  if (!message.ok()) return Malformed("RowTableBlock");
  PM_RETURN_IF_ERROR(CheckRows(ids, 1));
  PM_RETURN_IF_ERROR(CheckCount("norms", norms, ids, /*optional=*/false));
  PM_RETURN_IF_ERROR(CheckCount("labels", labels, ids, /*optional=*/true));
  PM_RETURN_IF_ERROR(wrong_id);
  for (size_t row = 0; row < ids; ++row) {
    const float norm = block->norms_[row];
    if (!(norm >= 0) || !std::isfinite(norm)) {
      return InRow(row, absl::StrCat("norm must be finite and not negative, but is ", norm));
    }
  }
  for (size_t row = 0; row < sent.size(); ++row) {
    const int64_t label = sent[row] > 0 ? sent[row] - 1 : sent[row];
    if (label <= kNoLabel || label > std::numeric_limits<int32_t>::max()) {
      return InRow(
          row, absl::StrCat("label must be -2147483647 to 2147483647 or absent, but is ", label));
    }
    block->labels_.push_back(sent[row] == 0 ? kNoLabel : static_cast<int32_t>(label));
  }
  return std::shared_ptr<const TableBlock>(std::move(block));
}

absl::StatusOr<std::shared_ptr<const PayloadBlock>> PayloadBlock::Parse(absl::string_view content,
                                                                        int64_t max_memory) {
  PM_RETURN_IF_ERROR(CheckBlockMemory(content, max_memory));
  auto block = std::make_shared<PayloadBlock>();
  block->payloads_.Reserve(0, content.size());
  size_t rows = 0;
  absl::Status wrong;
  WireReader message(content);
  while (message.Next()) {
    if (!message.Is(1, WireReader::kBytes)) continue;
    const absl::string_view payload = message.bytes();
    if (rows < kBlockRows && wrong.ok()) {
      const absl::Status valid = CheckPayload(std::string(payload));
      if (!valid.ok()) wrong = InRow(rows, valid.message());
      block->payloads_.Add(payload);
      block->longest_ = std::max(block->longest_, static_cast<int64_t>(payload.size()));
      block->bytes_ += static_cast<int64_t>(payload.size());
    }
    ++rows;
  }
  if (!message.ok()) return Malformed("RowPayloadBlock");
  PM_RETURN_IF_ERROR(CheckRows(rows, 0));
  PM_RETURN_IF_ERROR(wrong);
  return std::shared_ptr<const PayloadBlock>(std::move(block));
}

absl::StatusOr<RowTable> RowTable::Create(TableBlocks blocks, PayloadBlocks payloads) {
  if (blocks.empty()) return absl::DataLossError("the row table must have a block, but has none");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t rows = blocks[i]->rows();
    if (i + 1 < blocks.size() && rows != kBlockRows) {
      return absl::DataLossError(absl::StrCat("block ", i, " of the row table must have ",
                                              kBlockRows, " rows, but has ", rows));
    }
    if (payloads.empty() || payloads[i]->rows() == 0 || payloads[i]->rows() == rows) continue;
    return absl::DataLossError(absl::StrCat("block ", i, " of the payloads must have ", rows,
                                            " rows, but has ", payloads[i]->rows()));
  }
  return RowTable(std::move(blocks), std::move(payloads));
}

uint64_t RowTable::CountItems() const {
  uint64_t items = 0;
  for (const auto& block : blocks_) items += block->items();
  return items;
}

int64_t RowTable::payload_bytes() const {
  int64_t bytes = 0;
  for (const auto& block : payloads_) bytes += block->bytes();
  return bytes;
}

int64_t RowTable::longest_payload() const {
  int64_t longest = 0;
  for (const auto& block : payloads_) longest = std::max(longest, block->longest_payload());
  return longest;
}

}  // namespace privatemail::client

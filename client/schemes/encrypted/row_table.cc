#include "client/schemes/encrypted/row_table.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/schemes/memory_budget.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/lattice/scores.h"
#include "common/wire/message_memory.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::client {
namespace {

constexpr int kBlockRows = lattice::kDegree;

template <typename Message>
absl::StatusOr<Message> ParseWithin(absl::string_view content, int64_t max_memory) {
  google::protobuf::io::ArrayInputStream stream(content.data(), static_cast<int>(content.size()));
  const std::optional<int64_t> memory = MessageMemory(*Message::descriptor(), &stream);
  PM_RETURN_IF_ERROR(
      CheckMemory(static_cast<double>(memory.value_or(0)), "a block of rows", max_memory));
  Message message;
  if (memory.has_value() &&
      message.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    return message;
  }
  return absl::DataLossError(
      absl::StrCat("content must be a ", Message::descriptor()->full_name(), ", but is not"));
}

// name: of the field.
absl::Status CheckCount(const char* name, int count, int rows, bool optional) {
  if (count == rows || (optional && count == 0)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(name, " must have ", optional ? "no entry or " : "", rows,
                                          " entries, one for each row, but have ", count));
}

absl::Status CheckRows(int rows, int least) {
  if (rows >= least && rows <= kBlockRows) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("rows must be between ", least, " and ", kBlockRows, ", but are ", rows));
}

absl::Status InRow(int row, absl::string_view message) {
  return absl::DataLossError(absl::StrCat("row ", row, ": ", message));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TableBlock>> TableBlock::Parse(absl::string_view content,
                                                                    int64_t max_memory) {
  PM_ASSIGN_OR_RETURN(const auto message, ParseWithin<v1::RowTableBlock>(content, max_memory));
  const int rows = message.ids_size();
  PM_RETURN_IF_ERROR(CheckRows(rows, 1));
  PM_RETURN_IF_ERROR(CheckCount("norms", message.norms_size(), rows, /*optional=*/false));
  PM_RETURN_IF_ERROR(CheckCount("labels", message.labels_size(), rows, /*optional=*/true));
  auto block = std::make_shared<TableBlock>();
  for (int row = 0; row < rows; ++row) {
    if (!IsUtf8(message.ids(row))) return InRow(row, "id is not UTF-8");
    // Ranking copies and compares ids, so their lengths bound its time.
    if (message.ids(row).size() > kMaxItemIdBytes) {
      return InRow(row, absl::StrCat("id must have at most ", kMaxItemIdBytes, " bytes, but has ",
                                     message.ids(row).size()));
    }
    const float norm = message.norms(row);
    if (!(norm >= 0) || !std::isfinite(norm)) {
      return InRow(row, absl::StrCat("norm must be finite and not negative, but is ", norm));
    }
    block->ids_.Add(message.ids(row));
    if (!message.ids(row).empty()) ++block->items_;
    block->norms_.push_back(norm);
  }
  for (int row = 0; row < message.labels_size(); ++row) {
    const int64_t sent = message.labels(row);  // of labels from 0 on plus one, so that 0 means none
    const int64_t label = sent > 0 ? sent - 1 : sent;
    if (label <= kNoLabel || label > std::numeric_limits<int32_t>::max()) {
      return InRow(
          row, absl::StrCat("label must be -2147483647 to 2147483647 or absent, but is ", label));
    }
    block->labels_.push_back(sent == 0 ? kNoLabel : static_cast<int32_t>(label));
  }
  return std::shared_ptr<const TableBlock>(std::move(block));
}

absl::StatusOr<std::shared_ptr<const PayloadBlock>> PayloadBlock::Parse(absl::string_view content,
                                                                        int64_t max_memory) {
  PM_ASSIGN_OR_RETURN(const auto message, ParseWithin<v1::RowPayloadBlock>(content, max_memory));
  PM_RETURN_IF_ERROR(CheckRows(message.payloads_size(), 0));
  auto block = std::make_shared<PayloadBlock>();
  for (int row = 0; row < message.payloads_size(); ++row) {
    const absl::Status valid = CheckPayload(message.payloads(row));
    if (!valid.ok()) return InRow(row, valid.message());
    block->payloads_.Add(message.payloads(row));
    block->longest_ = std::max(block->longest_, std::ssize(message.payloads(row)));
    block->bytes_ += std::ssize(message.payloads(row));
  }
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

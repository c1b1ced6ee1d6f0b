#include "server/engine/payload_columns.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr size_t kPollRows = 4096;

// Approximate memory of a parsed value.
int64_t ValueBytes(const nlohmann::json& value) {
  constexpr int64_t kBlock = 48;  // a heap allocation with its overhead
  auto bytes = static_cast<int64_t>(sizeof(value));
  if (value.is_string()) bytes += kBlock + std::ssize(value.get_ref<const std::string&>());
  if (value.is_structured()) bytes += kBlock;
  if (value.is_array()) {
    for (const nlohmann::json& element : value) bytes += ValueBytes(element);
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      bytes += 2 * kBlock + std::ssize(name) + ValueBytes(member);
    }
  }
  return bytes;
}

absl::Status CheckNotCancelled(size_t row, const std::function<bool()>& cancelled) {
  if (row % kPollRows == 0 && cancelled && cancelled()) {
    return absl::CancelledError("the caller no longer waits for an answer");
  }
  return absl::OkStatus();
}

}  // namespace

PayloadColumns::PayloadColumns(std::vector<std::string> payloads)
    : payloads_(std::move(payloads)),
      columns_({.bytes = std::numeric_limits<int64_t>::max(), .entries = kMaxColumns},
               [](const Column& column) { return column.bytes; }) {}

PayloadColumns::~PayloadColumns() = default;

absl::StatusOr<std::vector<PayloadColumns::Column>> PayloadColumns::Parse(
    const std::vector<std::string>& paths, const std::function<bool()>& cancelled,
    int64_t memory) const {
  std::vector<Column> columns(paths.size());
  int64_t bytes = 0;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(row, cancelled));
    std::vector<nlohmann::json> values = ValuesAt(paths, payloads_[row]);
    for (size_t i = 0; i < paths.size(); ++i) {
      const int64_t value_bytes = ValueBytes(values[i]);
      columns[i].bytes += value_bytes;
      bytes += value_bytes;
      columns[i].values.push_back(std::move(values[i]));
    }
    if (bytes > memory) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory of this filter's ", paths.size(), " paths in bytes is at least ",
                       bytes, ", more than the limit of ", memory, " (max_request_memory)"));
    }
  }
  return columns;
}

absl::StatusOr<std::vector<int64_t>> PayloadColumns::MatchingRows(
    const PayloadFilter& filter, const HiddenRows* hidden, const std::function<bool()>& cancelled,
    int64_t memory) const {
  const auto parse = [&](const std::vector<std::string>& paths) {
    return Parse(paths, cancelled, memory);
  };
  PM_ASSIGN_OR_RETURN(const auto columns,
                      columns_.GetAll(
                          filter.paths(), [](const Column&) { return true; },
                          [&] { return cancelled && cancelled(); }, parse, memory));
  std::vector<int64_t> rows;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(row, cancelled));
    if (hidden != nullptr && hidden->hidden[row]) continue;
    const auto value_at = [&](size_t path) -> const nlohmann::json& {
      return columns[path]->values[row];
    };
    if (filter.Matches(value_at)) rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace privatemail::server

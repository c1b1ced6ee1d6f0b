#include "server/engine/payload_columns.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

constexpr size_t kRowsBetweenLooks = 4096;

// What a value takes, about; the rest of its payload is not kept.
int64_t BytesOf(const nlohmann::json& value) {
  constexpr int64_t kBlock = 48;  // of the heap, with what it costs to manage
  auto bytes = static_cast<int64_t>(sizeof(value));
  if (value.is_string()) bytes += kBlock + std::ssize(value.get_ref<const std::string&>());
  if (value.is_structured()) bytes += kBlock;
  if (value.is_array()) {
    for (const nlohmann::json& element : value) bytes += BytesOf(element);
  }
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      bytes += 2 * kBlock + std::ssize(name) + BytesOf(member);
    }
  }
  return bytes;
}

absl::Status Cancelled() {
  return absl::CancelledError("the caller no longer waits for an answer");
}

absl::Status LookUp(size_t row, const std::function<bool()>& cancelled) {
  if (row % kRowsBetweenLooks == 0 && cancelled && cancelled()) {
    return Cancelled();
  }
  return absl::OkStatus();
}

}  // namespace

struct PayloadColumns::Column {
  std::vector<nlohmann::json> values;  // one a row
  int64_t bytes = 0;
};

PayloadColumns::PayloadColumns(std::vector<std::string> payloads)
    : payloads_(std::move(payloads)) {}

PayloadColumns::~PayloadColumns() = default;

PayloadColumns::Columns PayloadColumns::Kept(const std::vector<std::string>& paths) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  Columns found;
  for (const std::string& path : paths) {
    const auto kept = std::find_if(columns_.begin(), columns_.end(),
                                   [&](const auto& column) { return column.first == path; });
    found.push_back(kept == columns_.end() ? nullptr : kept->second);
    if (kept != columns_.end()) columns_.splice(columns_.begin(), columns_, kept);
  }
  return found;
}

void PayloadColumns::Keep(const std::vector<std::string>& paths, const Columns& columns,
                          int64_t memory) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (size_t i = 0; i < paths.size(); ++i) columns_.emplace_front(paths[i], columns[i]);
  size_t kept = 0;
  for (const auto& [path, column] : columns_) {
    memory -= column->bytes;
    if (memory < 0 || kept == kMaxColumns) break;
    ++kept;
  }
  columns_.resize(kept);
}

absl::StatusOr<PayloadColumns::Columns> PayloadColumns::Parse(
    const std::vector<std::string>& paths, const std::function<bool()>& cancelled,
    int64_t memory) const {
  std::vector<std::shared_ptr<Column>> fresh;
  for (size_t i = 0; i < paths.size(); ++i) fresh.push_back(std::make_shared<Column>());
  int64_t bytes = 0;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(LookUp(row, cancelled));
    std::vector<nlohmann::json> values = ValuesAt(paths, payloads_[row]);
    for (size_t i = 0; i < paths.size(); ++i) {
      const int64_t taken = BytesOf(values[i]);
      fresh[i]->bytes += taken;
      bytes += taken;
      fresh[i]->values.push_back(std::move(values[i]));
    }
    if (bytes > memory) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory of this filter's ", paths.size(), " paths in bytes is at least ",
                       bytes, ", more than the limit of ", memory, " (max_request_memory)"));
    }
  }
  return Columns(fresh.begin(), fresh.end());
}

absl::StatusOr<PayloadColumns::Columns> PayloadColumns::ColumnsOf(
    const std::vector<std::string>& paths, const std::function<bool()>& cancelled,
    int64_t memory) const {
  const auto complete = [](const Columns& columns) {
    return std::find(columns.begin(), columns.end(), nullptr) == columns.end();
  };
  Columns columns = Kept(paths);
  if (complete(columns)) return columns;
  const std::optional<OneAtATime::Turn> turn =
      parsing_.Wait([&] { return cancelled && cancelled(); });
  if (!turn.has_value()) return Cancelled();
  columns = Kept(paths);  // who was here before may have wanted the same
  std::vector<std::string> wanted;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (columns[i] == nullptr) wanted.push_back(paths[i]);
  }
  PM_ASSIGN_OR_RETURN(const Columns fresh, Parse(wanted, cancelled, memory));
  Keep(wanted, fresh, memory);
  auto next = fresh.begin();
  for (std::shared_ptr<const Column>& column : columns) {
    if (column == nullptr) column = *next++;
  }
  return columns;
}

absl::StatusOr<std::vector<int64_t>> PayloadColumns::RowsThatFit(
    const PayloadFilter& filter, const HiddenRows* hidden, const std::function<bool()>& cancelled,
    int64_t memory) const {
  PM_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(filter.paths(), cancelled, memory));
  std::vector<int64_t> rows;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(LookUp(row, cancelled));
    if (hidden != nullptr && hidden->hidden[row]) continue;
    const auto value_at = [&](size_t path) -> const nlohmann::json& {
      return columns[path]->values[row];
    };
    if (filter.Matches(value_at)) rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace privatemail::server

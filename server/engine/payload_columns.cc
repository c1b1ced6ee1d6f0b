#include "server/engine/payload_columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// Calls `visit` with every path of the object that a filter may have. The recursion is bounded by
// the length of a path.
void VisitPaths(const nlohmann::json& object, const std::string& prefix,
                absl::FunctionRef<void(const std::string&)> visit) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = absl::StrCat(prefix, name);
    if (path.size() > kMaxFilterPathBytes) continue;
    if (value.is_object()) {
      VisitPaths(value, path + ".", visit);
    } else {
      visit(path);
    }
  }
}

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

absl::Status CheckMemory(size_t paths, int64_t bytes, const PayloadColumns::Search& search,
                         int64_t* reserved) {
  constexpr int64_t kStep = 1 << 20;
  while (search.reserve && *reserved < bytes) {
    PM_RETURN_IF_ERROR(search.reserve(kStep));
    *reserved += kStep;
  }
  if (bytes <= search.memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("memory of this filter's ", paths, " paths in bytes is at least ", bytes,
                   ", more than the limit of ", search.memory, " (memory / 16)"));
}

}  // namespace

absl::Status PayloadPaths::Read(absl::Span<const std::string> payloads,
                                const CancelledFunction& cancelled) {
  for (; next_ < payloads.size() && !given_up_; ++next_) {
    if (next_ % kPollRows == 0) PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    const auto payload =
        nlohmann::json::parse(payloads[next_], nullptr, /*allow_exceptions=*/false);
    if (!payload.is_object()) continue;
    VisitPaths(payload, "",
               [&](const std::string& path) { Add(path, static_cast<int64_t>(next_)); });
  }
  return absl::OkStatus();
}

void PayloadPaths::Add(const std::string& path, int64_t row) {
  if (given_up_) return;
  auto& rows = rows_.try_emplace(path, std::in_place).first->second;
  if (rows_.size() > kMaxPaths) {
    rows_.clear();
    given_up_ = true;
    return;
  }
  if (!rows || (!rows->empty() && rows->back() == row)) return;
  rows->push_back(row);
  if (rows->size() > kMaxRareRows) rows.reset();
}

std::optional<absl::Span<const int64_t>> PayloadPaths::RowsWith(const std::string& path) const {
  if (given_up_) return std::nullopt;
  const auto found = rows_.find(path);
  if (found == rows_.end()) return absl::Span<const int64_t>();
  if (!found->second) return std::nullopt;
  return *found->second;
}

int64_t PayloadColumns::Column::Add(nlohmann::json value) {
  const int64_t value_bytes = ValueBytes(value);
  bytes += value_bytes;
  values.push_back(std::move(value));
  return value_bytes;
}

PayloadColumns::PayloadColumns(std::vector<std::string> payloads, int64_t capacity)
    : payloads_(std::move(payloads)),
      capacity_(capacity),
      columns_({.bytes = capacity, .entries = kMaxColumns},
               [](const Column& column) { return column.bytes; }) {}

PayloadColumns::~PayloadColumns() = default;

const nlohmann::json& PayloadColumns::Column::At(size_t row) const {
  static const nlohmann::json none(nlohmann::json::value_t::discarded);
  if (!rows.has_value()) return values[row];
  const auto found = std::lower_bound(rows->begin(), rows->end(), static_cast<int64_t>(row));
  const bool present = found != rows->end() && *found == static_cast<int64_t>(row);
  return present ? values[static_cast<size_t>(found - rows->begin())] : none;
}

absl::StatusOr<std::vector<PayloadColumns::Column>> PayloadColumns::Parse(
    const std::vector<std::string>& paths, const Search& search) const {
  PM_RETURN_IF_ERROR(paths_.Read(payloads_, search.cancelled));
  std::vector<Column> columns(paths.size());
  std::vector<size_t> common;  // indices of columns whose path many items have
  int64_t bytes = 0, reserved = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto rows = paths_.RowsWith(paths[i]);
    if (!rows.has_value()) common.push_back(i);
    if (!rows.has_value()) continue;
    columns[i].rows.emplace(rows->begin(), rows->end());
    for (const int64_t row : *rows) {
      columns[i].Add(std::move(ValuesAt({&paths[i], 1}, payloads_[row]).front()));
    }
    bytes += columns[i].bytes;
    PM_RETURN_IF_ERROR(CheckMemory(paths.size(), bytes, search, &reserved));
  }
  if (common.empty()) return columns;
  std::vector<std::string> common_paths;
  for (const size_t i : common) common_paths.push_back(paths[i]);
  for (size_t row = 0; row < payloads_.size(); ++row) {
    if (row % kPollRows == 0) PM_RETURN_IF_ERROR(CheckNotCancelled(search.cancelled));
    std::vector<nlohmann::json> values = ValuesAt(common_paths, payloads_[row]);
    for (size_t i = 0; i < common.size(); ++i) {
      bytes += columns[common[i]].Add(std::move(values[i]));
    }
    PM_RETURN_IF_ERROR(CheckMemory(paths.size(), bytes, search, &reserved));
  }
  return columns;
}

absl::StatusOr<std::vector<std::shared_ptr<const PayloadColumns::Column>>>
PayloadColumns::ColumnsOf(const std::vector<std::string>& paths, const Search& search) const {
  return columns_.GetAll(
      paths, [](const Column&) { return true; },
      [&] { return search.cancelled && search.cancelled(); },
      [&](const std::vector<std::string>& missing) { return Parse(missing, search); },
      std::min(search.memory, capacity_), search.owner);
}

absl::StatusOr<std::vector<std::string>> PayloadColumns::UnknownPaths(
    const std::vector<std::string>& paths, const HiddenRows* hidden, const Search& search) const {
  PM_ASSIGN_OR_RETURN(const auto columns, ColumnsOf(paths, search));
  std::vector<std::string> unknown;
  for (size_t i = 0; i < paths.size(); ++i) {
    bool is_known = false;
    for (size_t row = 0; row < payloads_.size() && !is_known; ++row) {
      if (hidden != nullptr && hidden->hidden[row]) continue;
      is_known = !columns[i]->At(row).is_discarded();
    }
    if (!is_known) unknown.push_back(paths[i]);
  }
  return unknown;
}

absl::StatusOr<std::vector<int64_t>> PayloadColumns::MatchingRows(const PayloadFilter& filter,
                                                                  const HiddenRows* hidden,
                                                                  const Search& search) const {
  PM_ASSIGN_OR_RETURN(const auto columns, ColumnsOf(filter.paths(), search));
  std::vector<int64_t> rows;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    if (row % kPollRows == 0) PM_RETURN_IF_ERROR(CheckNotCancelled(search.cancelled));
    if (hidden != nullptr && hidden->hidden[row]) continue;
    const auto value_at = [&](size_t path) -> const nlohmann::json& {
      return columns[path]->At(row);
    };
    if (filter.Matches(value_at)) rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace privatemail::server

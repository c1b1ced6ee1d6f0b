#include "server/engine/payload_columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr size_t kRowsBetweenLooks = 4096;

absl::Status LookUp(size_t row, const std::function<bool()>& cancelled) {
  if (row % kRowsBetweenLooks == 0 && cancelled && cancelled()) {
    return absl::CancelledError("the caller no longer waits for an answer");
  }
  return absl::OkStatus();
}

}  // namespace

PayloadColumns::PayloadColumns(std::vector<std::string> payloads)
    : payloads_(std::move(payloads)) {}

PayloadColumns::~PayloadColumns() = default;

std::vector<std::shared_ptr<const PayloadColumns::Column>> PayloadColumns::Kept(
    const std::vector<std::string>& paths) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<std::shared_ptr<const Column>> found;
  for (const std::string& path : paths) {
    const auto kept = std::find_if(columns_.begin(), columns_.end(),
                                   [&](const auto& column) { return column.first == path; });
    found.push_back(kept == columns_.end() ? nullptr : kept->second);
    if (kept != columns_.end()) columns_.splice(columns_.begin(), columns_, kept);
  }
  return found;
}

absl::StatusOr<std::vector<std::shared_ptr<const PayloadColumns::Column>>>
PayloadColumns::ColumnsOf(const std::vector<std::string>& paths,
                          const std::function<bool()>& cancelled) const {
  const auto complete = [](const std::vector<std::shared_ptr<const Column>>& columns) {
    return std::find(columns.begin(), columns.end(), nullptr) == columns.end();
  };
  std::vector<std::shared_ptr<const Column>> columns = Kept(paths);
  if (complete(columns)) return columns;
  const std::lock_guard<std::mutex> parsing(parsing_);
  columns = Kept(paths);  // who was here before may have wanted the same
  std::vector<std::string> wanted;
  std::vector<std::shared_ptr<Column>> fresh;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (columns[i] != nullptr) continue;
    wanted.push_back(paths[i]);
    columns[i] = fresh.emplace_back(std::make_shared<Column>(payloads_.size()));
  }
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(LookUp(row, cancelled));
    std::vector<nlohmann::json> values = ValuesAt(wanted, payloads_[row]);
    for (size_t i = 0; i < wanted.size(); ++i) (*fresh[i])[row] = std::move(values[i]);
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  for (size_t i = 0; i < wanted.size(); ++i) columns_.emplace_front(wanted[i], fresh[i]);
  if (columns_.size() > kMaxColumns) columns_.resize(kMaxColumns);
  return columns;
}

absl::StatusOr<std::vector<int64_t>> PayloadColumns::RowsThatFit(
    const PayloadFilter& filter, const HiddenRows* hidden,
    const std::function<bool()>& cancelled) const {
  PM_ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<const Column>> columns,
                      ColumnsOf(filter.paths(), cancelled));
  std::vector<int64_t> rows;
  for (size_t row = 0; row < payloads_.size(); ++row) {
    PM_RETURN_IF_ERROR(LookUp(row, cancelled));
    if (hidden != nullptr && hidden->hidden[row]) continue;
    const auto value_at = [&](size_t path) -> const nlohmann::json& {
      return (*columns[path])[row];
    };
    if (filter.Matches(value_at)) rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace privatemail

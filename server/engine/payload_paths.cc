#include "server/engine/payload_paths.h"

#include <nlohmann/json.hpp>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "common/items/payload_filter.h"

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
  Rows& found = rows_[path];
  if (rows_.size() > kMaxPaths) {
    rows_.clear();
    given_up_ = true;
    return;
  }
  if (found.common || (!found.rows.empty() && found.rows.back() == row)) return;
  found.rows.push_back(row);
  if (found.rows.size() <= kMaxRareRows) return;
  found = {.rows = {}, .common = true};
}

std::optional<absl::Span<const int64_t>> PayloadPaths::RowsWith(const std::string& path) const {
  if (given_up_) return std::nullopt;
  const auto found = rows_.find(path);
  if (found == rows_.end()) return absl::Span<const int64_t>();
  if (found->second.common) return std::nullopt;
  return found->second.rows;
}

}  // namespace privatemail::server

#include "client/transport/upload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

constexpr int64_t kMaxItemsPerMessage = 512;
constexpr int64_t kMaxBytesPerMessage = int64_t{4} << 20;
constexpr int64_t kItemOverhead = 64;  // tags and lengths of a message's item

// Rows in parts of some megabytes of features.
int64_t RowsPerPart(const ItemColumns& items) {
  return std::clamp(kMaxBytesPerMessage / (items.feature_dim * int64_t{sizeof(float)}), int64_t{1},
                    kMaxItemsPerMessage);
}

int64_t MessageBytes(const ItemColumns& items, size_t row) {
  const size_t payload = items.payloads.empty() ? 0 : items.payloads[row].size();
  return items.feature_dim * int64_t{sizeof(float)} + kItemOverhead +
         static_cast<int64_t>(items.ids[row].size() + payload);
}

// OK if the server takes the row.
absl::Status CheckRow(const ItemColumns& items, size_t row, const float* features,
                      const PublicParameters& parameters) {
  for (int64_t column = 0; column < items.feature_dim; ++column) {
    if (std::isfinite(features[column])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(std::isnan(features[column]) ? "NaN" : "infinity", " in column ", column));
  }
  const Metric metric = parameters.HasAnchors() ? Metric::kCosine : parameters.metric;
  absl::Status status = CheckHasSimilarity("features", metric, features, items.feature_dim);
  status.Update(CheckItemId(items.ids[row]));
  status.Update(CheckItemLabel(items.labels.empty() ? kNoLabel : items.labels[row], parameters));
  if (!items.payloads.empty()) status.Update(CheckPayload(items.payloads[row]));
  if (MessageBytes(items, row) > kMaxMessageBytes) {
    status.Update(InvalidField("payload", absl::StrCat("must fit into a message of ",
                                                       kMaxMessageBytes, " bytes, but does not")));
  }
  return status;
}

// The part of a reason that rows share, which numbers such as labels and lengths are not. Columns
// tell apart.
std::string KindOf(std::string reason) {
  if (!absl::StrContains(reason, " in column ")) {
    std::erase_if(reason, [](char c) { return absl::ascii_isdigit(c); });
  }
  return reason;
}

// The rows to send, ascending.
std::vector<int64_t> RowsToSend(const ItemColumns& items,
                                const std::vector<MalformedRows>& malformed) {
  std::vector<int64_t> left_out, rows;
  for (const MalformedRows& one : malformed) {
    left_out.insert(left_out.end(), one.rows.begin(), one.rows.end());
  }
  std::sort(left_out.begin(), left_out.end());
  rows.reserve(items.ids.size() - left_out.size());
  auto next = left_out.begin();
  for (int64_t row = 0; row < std::ssize(items.ids); ++row) {
    if (next != left_out.end() && *next == row) {
      ++next;
    } else {
      rows.push_back(row);
    }
  }
  return rows;
}

absl::StatusOr<v1::UpsertItemsResponse> UploadOnce(const AdminClient& admin,
                                                   const std::string& collection,
                                                   const ItemColumns& items,
                                                   const std::vector<int64_t>& rows,
                                                   const std::function<void(int64_t)>& progress) {
  size_t sent = 0;
  absl::StatusOr<v1::UpsertItemsResponse> response =
      admin.UpsertItems([&](v1::UpsertItemsRequest* message) {
        if (sent == rows.size()) return false;
        message->set_collection(collection);
        if (sent == 0) {
          message->mutable_class_names()->Assign(items.class_names.begin(),
                                                 items.class_names.end());
        }
        int64_t bytes = 0;
        while (sent < rows.size() && message->items_size() < kMaxItemsPerMessage) {
          const auto row = static_cast<size_t>(rows[sent]);
          bytes += MessageBytes(items, row);
          if (bytes > kMaxBytesPerMessage && message->items_size() > 0) break;
          v1::Item* item = message->add_items();
          item->set_id(items.ids[row]);
          LabelToProto(items.labels.empty() ? kNoLabel : items.labels[row], item);
          item->mutable_features()->Resize(static_cast<int>(items.feature_dim), 0);
          items.copy_features(rows[sent], 1, item->mutable_features()->mutable_data());
          if (!items.payloads.empty()) item->set_payload(items.payloads[row]);
          ++sent;
        }
        if (progress) progress(static_cast<int64_t>(sent));
        return true;
      });
  if (!response.ok()) {
    const absl::Status& status = response.status();
    if (!absl::IsResourceExhausted(status) && !absl::IsUnavailable(status)) return status;
    return WithNote(status,
                    absl::StrCat("; of ", rows.size(), " items up to ", sent, " may be stored"));
  }
  for (v1::RejectedItem& item : *response->mutable_first_rejected()) {
    if (item.position() < rows.size())
      item.set_position(static_cast<uint64_t>(rows[item.position()]));
  }
  return response;
}

}  // namespace

std::string MalformedRows::ToString() const {
  constexpr size_t kMaxListed = 5;
  const auto end = rows.begin() + static_cast<ptrdiff_t>(std::min(kMaxListed, rows.size()));
  const bool is_one = rows.size() == 1;
  return absl::StrCat(rows.size(), is_one ? " row: " : " rows: ", varies ? "such as " : "", reason,
                      is_one ? " (row " : " (rows ", absl::StrJoin(rows.begin(), end, ", "),
                      end == rows.end() ? ")" : ", ...)");
}

std::vector<MalformedRows> FindMalformed(const ItemColumns& items,
                                         const PublicParameters& parameters) {
  std::vector<MalformedRows> found;
  std::map<std::string, size_t> index;  // by kind
  const int64_t rows = std::ssize(items.ids), part = RowsPerPart(items);
  std::vector<float> features(static_cast<size_t>(std::min(part, rows) * items.feature_dim));
  for (int64_t first = 0; first < rows; first += part) {
    const int64_t count = std::min(part, rows - first);
    items.copy_features(first, count, features.data());
    for (int64_t row = first; row < first + count; ++row) {
      const float* at = features.data() + (row - first) * items.feature_dim;
      const absl::Status status = CheckRow(items, static_cast<size_t>(row), at, parameters);
      if (status.ok()) continue;
      const std::string reason(status.message());
      const auto [known, added] = index.try_emplace(KindOf(reason), found.size());
      if (added) {
        const std::optional<FieldProblem> problem = FieldProblemOf(status);
        found.push_back({problem.has_value() ? problem->field : "features",
                         reason,
                         {},
                         items.ids[static_cast<size_t>(row)]});
      }
      MalformedRows& group = found[known->second];
      group.varies = group.varies || (!added && reason != group.reason);
      group.rows.push_back(row);
    }
  }
  return found;
}

std::string StrippedText(const v1::UpsertItemsResponse& response) {
  if (response.stripped() == 0) return "";
  return absl::StrCat(response.stripped(),
                      " stored items lost a payload or a label that they had and this upload does "
                      "not give: an item replaces that of its id as a whole");
}

absl::StatusOr<v1::UpsertItemsResponse> UploadItems(const AdminClient& admin,
                                                    const std::string& collection,
                                                    const ItemColumns& items,
                                                    const std::vector<MalformedRows>& malformed,
                                                    const UploadObserver& observer) {
  constexpr int kTries = 6;  // about half a minute: long enough for a daemon to start again
  const std::vector<int64_t> rows = RowsToSend(items, malformed);
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<v1::UpsertItemsResponse> response =
        UploadOnce(admin, collection, items, rows, observer.progress);
    if (response.status().code() != absl::StatusCode::kUnavailable || attempt == kTries) {
      return response;
    }
    const absl::Duration pause = absl::Milliseconds(500) * (1 << attempt);
    observer.warn(absl::StrCat(response.status().message(), "; sending again in ",
                               absl::FormatDuration(pause)));
    PM_RETURN_IF_ERROR(SleepUnlessCancelled(pause, observer.cancelled));
    // Connects: between calls a handshake of gRPC takes longer than the 5 s that nginx waits for
    // it, and only calls that gRPC retries wait for one.
    (void)admin.IsServing("");
  }
}

}  // namespace privatemail::client

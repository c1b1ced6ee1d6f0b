#include "client/transport/upload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/items/item_checks.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client {
namespace {

constexpr int64_t kMaxItemsPerMessage = 512;
constexpr int64_t kMaxValuesPerMessage = 1 << 20;

absl::StatusOr<v1::UpsertItemsResponse> UploadOnce(const AdminClient& admin,
                                                   const std::string& collection,
                                                   const ItemColumns& items,
                                                   const std::function<void(int64_t)>& progress) {
  const auto rows = static_cast<int64_t>(items.ids.size());
  const int64_t per_message =
      std::clamp(kMaxValuesPerMessage / items.feature_dim, int64_t{1}, kMaxItemsPerMessage);
  int64_t sent = 0;
  return admin.UpsertItems([&](v1::UpsertItemsRequest* message) {
    if (sent == rows) return false;
    message->set_collection(collection);
    for (const int64_t end = std::min(rows, sent + per_message); sent < end; ++sent) {
      const auto row = static_cast<size_t>(sent);
      v1::Item* item = message->add_items();
      item->set_id(items.ids[row]);
      LabelToProto(items.labels.empty() ? kNoLabel : items.labels[row], item);
      const float* features = items.features + sent * items.feature_dim;
      item->mutable_features()->Assign(features, features + items.feature_dim);
      if (!items.payloads.empty()) item->set_payload(items.payloads[row]);
    }
    if (progress) progress(sent);
    return true;
  });
}

}  // namespace

absl::StatusOr<v1::UpsertItemsResponse> UploadItems(const AdminClient& admin,
                                                    const std::string& collection,
                                                    const ItemColumns& items,
                                                    const UploadObserver& observer) {
  constexpr int kTries = 6;  // about half a minute: long enough for a daemon to start again
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<v1::UpsertItemsResponse> response =
        UploadOnce(admin, collection, items, observer.progress);
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

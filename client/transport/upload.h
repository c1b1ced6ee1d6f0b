// Uploads of gallery items from columns in memory.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "privatemail/admin_client.h"

namespace privatemail::client {

// n items as columns; owns nothing.
struct ItemColumns {
  const float* features = nullptr;   // n x feature_dim, row-major
  int64_t feature_dim = 0;           // >= 1
  absl::Span<const int32_t> labels;  // or kNoLabel; empty: no item has one
  absl::Span<const std::string> ids;
  absl::Span<const std::string> payloads;  // JSON texts, or empty: none
};

struct UploadObserver {
  std::function<void(int64_t)> progress;         // items sent so far; may be null
  std::function<void(const std::string&)> warn;  // of a broken stream
  CancelledFunction cancelled = nullptr;         // between two streams
};

// AdminClient::UpsertItems in messages far below their limit. A stream that breaks off with
// UNAVAILABLE is sent again from its first item, up to half a minute: stored items count as
// unchanged. An exception of the observer ends the upload.
absl::StatusOr<v1::UpsertItemsResponse> UploadItems(const AdminClient& admin,
                                                    const std::string& collection,
                                                    const ItemColumns& items,
                                                    const UploadObserver& observer);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_

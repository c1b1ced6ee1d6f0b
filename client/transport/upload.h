// Uploads of gallery items from columns in memory or in a mapped file.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/cancellation.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/admin_client.h"

namespace privatemail::client {

// n items as columns; owns nothing.
struct ItemColumns {
  // Writes `count` rows from `first` on, count x feature_dim.
  std::function<void(int64_t first, int64_t count, float* out)> copy_features;
  int64_t feature_dim = 0;           // >= 1
  absl::Span<const int32_t> labels;  // or kNoLabel; empty: no item has one
  absl::Span<const std::string> ids;
  absl::Span<const std::string> payloads;     // JSON texts, or empty: none
  absl::Span<const std::string> class_names;  // UpsertItemsRequest.class_names
};

// Rows that are malformed for the same reason, but for its numbers.
struct MalformedRows {
  std::string field;          // "features", "id", "label" or "payload"
  std::string reason;         // of the first: "NaN in column 3"
  std::vector<int64_t> rows;  // ascending
  std::string first_id;
  bool varies = false;  // others have other numbers

  // "50 rows: NaN in column 3 (rows 7, 19, ...)"
  std::string ToString() const;
};

// The rows that the server would reject, by reasons in the order of their first rows.
std::vector<MalformedRows> FindMalformed(const ItemColumns& items,
                                         const PublicParameters& parameters);

struct UploadObserver {
  std::function<void(int64_t)> progress;         // items sent so far; may be null
  std::function<void(const std::string&)> warn;  // of a broken stream
  CancelledFunction cancelled = nullptr;         // between two streams
};

// AdminClient::UpsertItems in messages far below their limit, without the malformed rows. A stream
// that breaks off with UNAVAILABLE is sent again from its first item, up to half a minute: stored
// items count as unchanged. An exception of the observer ends the upload. RESOURCE_EXHAUSTED
// and UNAVAILABLE say how many items may be stored.
absl::StatusOr<v1::UpsertItemsResponse> UploadItems(const AdminClient& admin,
                                                    const std::string& collection,
                                                    const ItemColumns& items,
                                                    const std::vector<MalformedRows>& malformed,
                                                    const UploadObserver& observer);

// A warning about items that lost a payload or a label; empty: none did.
std::string StrippedText(const v1::UpsertItemsResponse& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_UPLOAD_H_

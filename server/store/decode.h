// Stored bytes, common to both stores.
//
//   | features    | float32, little-endian, row-major  |
//   | coordinates | float64, little-endian, row-major  |
//   | labels      | int32, little-endian               |
//   | parameters  | a serialized v1.PublicParameters   |
//   | quality     | a serialized v1.CellQuality        |
//
// Errors are DATA_LOSS; the store adds its place.
#ifndef PRIVATEMAIL_SERVER_STORE_DECODE_H_
#define PRIVATEMAIL_SERVER_STORE_DECODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "server/store/types.h"

namespace privatemail::server {

std::string EncodeParameters(const PublicParameters& parameters);
// name: of the collection, for errors.
absl::StatusOr<PublicParameters> DecodeParameters(absl::string_view name, absl::string_view bytes);

// Checks the anchors against their digest.
absl::StatusOr<StoredCollection> DecodeCollection(absl::string_view name,
                                                  absl::string_view parameters,
                                                  absl::string_view anchor_features,
                                                  absl::string_view anchor_labels);

std::string EncodeQuality(const CellQuality& quality);
// The partitions' values; empty without bytes.
absl::StatusOr<std::optional<CellQuality>> DecodeQuality(absl::string_view bytes,
                                                         size_t partitions);

// Checks that a blob holds exactly rows x cols values, before the caller allocates for them. what:
// for errors.
absl::Status CheckBlobSize(absl::string_view what, absl::string_view blob, int64_t rows,
                           int64_t cols, size_t value_bytes);

// blob: rows x cols values, copied to `values`.
template <typename Value>
absl::Status DecodeValues(absl::string_view what, absl::string_view blob, int64_t rows,
                          int64_t cols, Value* values) {
  PM_RETURN_IF_ERROR(CheckBlobSize(what, blob, rows, cols, sizeof(Value)));
  std::copy_n(blob.data(), blob.size(), reinterpret_cast<char*>(values));
  return absl::OkStatus();
}

template <typename Value>
absl::string_view BytesOf(const Value* values, int64_t count) {
  return {reinterpret_cast<const char*>(values), static_cast<size_t>(count) * sizeof(Value)};
}

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_DECODE_H_

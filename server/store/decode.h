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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/types.h"

namespace privatemail::server {

std::string EncodeParameters(const PublicParameters& parameters);
// name: of the collection, for errors.
absl::StatusOr<PublicParameters> DecodeParameters(absl::string_view name, absl::string_view bytes);

// Fixes the dimension of stored parameters unless they have one. Returns the dimension that they
// have then. INVALID_ARGUMENT: they cannot have this one.
absl::StatusOr<int64_t> FixDimension(absl::string_view name, int64_t dimension,
                                     std::string* parameters);

// Checks the anchors against their digest.
absl::StatusOr<StoredCollection> DecodeCollection(absl::string_view name,
                                                  absl::string_view parameters,
                                                  absl::string_view anchor_features,
                                                  absl::string_view anchor_labels);

std::string EncodeQuality(const CellQuality& quality);
// The partitions' values; empty without bytes.
absl::StatusOr<std::optional<CellQuality>> DecodeQuality(absl::string_view bytes,
                                                         size_t partitions);

// blob: `count` values, copied to `values`. id: of the item.
absl::Status DecodeFeatures(absl::string_view id, absl::string_view blob, int64_t count,
                            float* values);
// blob: rows x cols values, copied to `values`. of: "item x", for errors.
absl::Status DecodeCoordinates(absl::string_view of, absl::string_view blob, int64_t rows,
                               int64_t cols, double* values);

template <typename Value>
absl::string_view BytesOf(const Value* values, int64_t count) {
  return {reinterpret_cast<const char*>(values), static_cast<size_t>(count) * sizeof(Value)};
}

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_DECODE_H_

// Validation of items: their texts, labels and vectors, the same on both sides.
#ifndef PRIVATEMAIL_COMMON_ITEMS_ITEM_CHECKS_H_
#define PRIVATEMAIL_COMMON_ITEMS_ITEM_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

// Maximum nesting of arrays and objects in a payload: recursive JSON parsers would exhaust their
// stacks on deeper ones.
inline constexpr int kMaxPayloadDepth = 64;

inline constexpr size_t kMaxItemIdBytes = 512;

// Stands for the label of an item that has none, in memory and in stores.
inline constexpr int32_t kNoLabel = std::numeric_limits<int32_t>::min();

bool IsUtf8(absl::string_view text);

// INVALID_ARGUMENT unless the id is 1 to kMaxItemIdBytes bytes of UTF-8.
absl::Status CheckItemId(const std::string& id);

// INVALID_ARGUMENT unless the payload is empty or JSON nested at most kMaxPayloadDepth deep. The
// message does not repeat the payload.
absl::Status CheckPayload(const std::string& payload);

// INVALID_ARGUMENT: no item of the collection can have this label. With classes it must be one of
// slot_labels; without, every label and kNoLabel are allowed.
absl::Status CheckItemLabel(int32_t label, const PublicParameters& parameters);

// INVALID_ARGUMENT: the vector has no similarity by this metric, because a value is not finite, or
// because all are zero and the metric is cosine, which needs a direction.
absl::Status CheckHasSimilarity(absl::string_view field, Metric metric, const float* values,
                                int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_ITEM_CHECKS_H_

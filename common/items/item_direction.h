// A check that a metric can rank a vector: by cosine a zero vector has no direction.
#ifndef PRIVATEMAIL_COMMON_ITEMS_ITEM_DIRECTION_H_
#define PRIVATEMAIL_COMMON_ITEMS_ITEM_DIRECTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

// INVALID_ARGUMENT: the vector has no similarity by this metric, because a value is not finite, or
// because all are zero and the metric is cosine, which needs a direction.
absl::Status CheckHasSimilarity(absl::string_view field, Metric metric, const float* values,
                                int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_ITEM_DIRECTION_H_

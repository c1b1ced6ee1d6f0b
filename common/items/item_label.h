// The label of an item, which may be missing.
#ifndef PRIVATEMAIL_COMMON_ITEMS_ITEM_LABEL_H_
#define PRIVATEMAIL_COMMON_ITEMS_ITEM_LABEL_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

// Stands for the label of an item that has none, in memory and in stores.
inline constexpr int32_t kNoLabel = std::numeric_limits<int32_t>::min();

// INVALID_ARGUMENT: no item of the collection can have this label. With classes it must be one of
// slot_labels; without, every label and kNoLabel are allowed.
absl::Status CheckItemLabel(int32_t label, const PublicParameters& parameters);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_ITEM_LABEL_H_

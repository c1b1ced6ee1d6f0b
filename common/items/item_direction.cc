#include "common/items/item_direction.h"

#include <algorithm>

#include "common/base/validate.h"

namespace privatemail {

absl::Status CheckHasSimilarity(absl::string_view field, Metric metric, const float* values,
                                int64_t count) {
  const bool is_zero = std::all_of(values, values + count, [](float value) { return value == 0; });
  if (is_zero && metric != Metric::kCosine) return absl::OkStatus();
  return CheckUnitScalable(field, values, count);
}

}  // namespace privatemail

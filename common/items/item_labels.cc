#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/items/item_checks.h"

namespace privatemail {

absl::Status CheckItemLabel(int32_t label, const PublicParameters& parameters) {
  if (!parameters.HasClasses()) return absl::OkStatus();
  if (label != kNoLabel && parameters.SlotOf(label).ok()) return absl::OkStatus();
  return InvalidField(
      "label",
      absl::StrCat("must be one of the collection's ", parameters.slot_labels.size(), " labels (",
                   parameters.slot_labels.front(), " to ", parameters.slot_labels.back(),
                   "), but is ", label == kNoLabel ? "missing" : absl::StrCat(label)));
}

}  // namespace privatemail

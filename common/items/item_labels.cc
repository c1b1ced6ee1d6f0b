#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/items/item_checks.h"

namespace privatemail {

absl::Status CheckItemLabel(int32_t label, const PublicParameters& parameters) {
  if (!parameters.HasClasses()) return absl::OkStatus();
  if (label == kNoLabel) {
    return InvalidField(
        "label", absl::StrCat("must be one of the collection's ", parameters.slot_labels.size(),
                              " classes (", parameters.slot_labels.front(), " to ",
                              parameters.slot_labels.back(), "), but is missing"));
  }
  if (const auto slot = parameters.SlotOf(label); !slot.ok()) {
    return absl::InvalidArgumentError(slot.status().message());
  }
  return absl::OkStatus();
}

}  // namespace privatemail

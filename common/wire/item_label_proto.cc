#include "common/wire/item_label_proto.h"

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/items/item_label.h"

namespace privatemail {

void LabelToProto(int32_t label, v1::Item* proto) {
  proto->set_unlabelled(label == kNoLabel);
  proto->set_label(label == kNoLabel ? 0 : label);
}

absl::StatusOr<int32_t> LabelFromProto(const v1::Item& proto) {
  if (proto.unlabelled()) {
    if (proto.label() == 0) return kNoLabel;
    return InvalidField("label",
                        absl::StrCat("must be 0 where unlabelled is set, but is ", proto.label()));
  }
  if (proto.label() != kNoLabel) return proto.label();
  return InvalidField("label", absl::StrCat("must not be ", kNoLabel,
                                            ": set unlabelled for an item without a label"));
}

}  // namespace privatemail

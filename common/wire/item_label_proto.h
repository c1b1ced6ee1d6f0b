// Conversion of items' labels to and from protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_ITEM_LABEL_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_ITEM_LABEL_PROTO_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/v1/collections.pb.h"

namespace privatemail {

// label: of the item, or kNoLabel.
void LabelToProto(int32_t label, v1::Item* proto);

// The label, or kNoLabel. INVALID_ARGUMENT: an item without a label has one, or the label is
// kNoLabel's number.
absl::StatusOr<int32_t> LabelFromProto(const v1::Item& proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_ITEM_LABEL_PROTO_H_

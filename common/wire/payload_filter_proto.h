// Validation of payload filters from a peer.
#ifndef PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_PROTO_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/items/payload_filter.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

inline constexpr int kMaxFilterDepth = 8;
inline constexpr int kMaxFilterConditions = 64;
inline constexpr int kMaxFilterValues = 1000;
inline constexpr size_t kMaxFilterTextBytes = 1024;  // of a value

// INVALID_ARGUMENT naming the invalid part: "filter.all_of[1].range.path must be ...". Values are
// not repeated. The client calls it before it spends a budget.
absl::StatusOr<PayloadFilter> FromProto(absl::string_view field, const v1::PayloadFilter& proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_PAYLOAD_FILTER_PROTO_H_

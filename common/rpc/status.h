// absl::Status <-> grpc::Status, total in both directions: the codes have the same numbers.
#ifndef PRIVATEMAIL_COMMON_RPC_STATUS_H_
#define PRIVATEMAIL_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <cstddef>

#include "absl/status/status.h"

namespace privatemail {

// A message travels in a header, where a byte takes up to three: whatever a peer has sent that it
// repeats, it is cut here.
inline constexpr size_t kMaxStatusMessageBytes = 1000;

grpc::Status ToGrpc(const absl::Status& status);
// A code that gRPC does not define becomes UNKNOWN, its number in the message.
absl::Status FromGrpc(const grpc::Status& status);

// Largest message either side accepts, in bytes. One limit for both, so neither sends what the
// other refuses.
inline constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_STATUS_H_

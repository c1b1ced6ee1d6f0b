// Limits on what an untrusted server can make a client allocate and compute.
#ifndef PRIVATEMAIL_CLIENT_LIMITS_H_
#define PRIVATEMAIL_CLIENT_LIMITS_H_

#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace privatemail::client {

inline constexpr int64_t kMaxMemory = int64_t{1} << 30;  // default, bytes

// Limits of a client of one collection, whose sizes the server chooses. They are checked before a
// query is charged; post-processing is checked once more, after the charge.
struct ClientLimits {
  // Bytes of the arrays of a query, estimated from the parameters before any is allocated.
  int64_t max_memory = kMaxMemory;
  // The time of opening a collection, of its rehearsal, and of each search before its charge and in
  // its post-processing. A single matrix decomposition is not interrupted.
  absl::Duration max_computing = absl::Seconds(30);

  // For parameters of a trusted source.
  static ClientLimits None() {
    return {std::numeric_limits<int64_t>::max(), absl::InfiniteDuration()};
  }
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_LIMITS_H_

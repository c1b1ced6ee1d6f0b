// How fast each key may call.
#ifndef PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_
#define PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_

#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/access_key.h"

namespace privatemail {

// A token bucket for each key that has a limit: filled at its requests_per_second, it holds what
// two seconds fill and at least one token; a call takes one. Thread-safe.
class RateLimits {
 public:
  // RESOURCE_EXHAUSTED naming the limit and when to try again. `now` must not go backwards; when it
  // does, nothing is filled.
  absl::Status Take(const AccessKey& key, absl::Time now);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Time filled_at;
  };
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // by key id: not more than there are keys
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_

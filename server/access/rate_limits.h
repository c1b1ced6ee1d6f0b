// How fast each key may call.
#ifndef PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_
#define PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/access_key.h"

namespace privatemail::server {

// A token bucket for each key that has a limit: filled at its requests_per_second, it holds what
// two seconds fill and at least one token; a call takes one. Thread-safe.
class RateLimits {
 public:
  // Steady: whoever sets the machine's clock neither stops nor opens the door.
  using Clock = std::chrono::steady_clock;

  // RESOURCE_EXHAUSTED naming the limit and when to try again, which `wait`, if given, is set to.
  // Threads that read the clock in one order and come in another fill nothing twice.
  absl::Status Take(const AccessKey& key, Clock::time_point now, absl::Duration* wait = nullptr);

  // Keys that have called lately, and perhaps some that have not.
  size_t size() const;

 private:
  struct Bucket {
    double rate = 0;
    double capacity = 0;
    double tokens = 0;
    Clock::time_point filled_at;

    void Fill(Clock::time_point now);
  };
  // Drops buckets that are full, which is what a key without one gets.
  void Forget(Clock::time_point now);

  mutable std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // by key id
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_RATE_LIMITS_H_

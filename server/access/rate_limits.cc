#include "server/access/rate_limits.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace privatemail {

absl::Status RateLimits::Take(const AccessKey& key, absl::Time now) {
  const double rate = key.grant.requests_per_second;
  if (!(rate > 0)) return absl::OkStatus();
  const double capacity = std::max(1.0, 2 * rate);
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto [found, fresh] = buckets_.try_emplace(key.id, Bucket{capacity, now});
  Bucket& bucket = found->second;
  const double passed = std::max(0.0, absl::ToDoubleSeconds(now - bucket.filled_at));
  bucket.tokens = std::min(capacity, bucket.tokens + passed * rate);
  bucket.filled_at = std::max(bucket.filled_at, now);
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrFormat("key %s may make %g calls a second (%g at once): try again in %.2g s", key.id,
                      rate, capacity, (1 - bucket.tokens) / rate));
}

}  // namespace privatemail

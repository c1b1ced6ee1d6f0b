#include "server/access/rate_limits.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"

namespace privatemail::server {
namespace {

// Keys come and go: what has been idle is looked for when there are more.
constexpr size_t kManyBuckets = 1000;

}  // namespace

void RateLimits::Bucket::Fill(Clock::time_point now) {
  const double passed = std::max(0.0, std::chrono::duration<double>(now - filled_at).count());
  tokens = std::min(capacity, tokens + passed * rate);
  filled_at = std::max(filled_at, now);
}

void RateLimits::Forget(Clock::time_point now) {
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    bucket->second.Fill(now);
    const bool full = bucket->second.tokens == bucket->second.capacity;
    bucket = full ? buckets_.erase(bucket) : std::next(bucket);
  }
}

absl::Status RateLimits::Take(const AccessKey& key, Clock::time_point now, absl::Duration* wait) {
  const double rate = key.grant.requests_per_second;
  if (!(rate > 0)) return absl::OkStatus();
  const std::lock_guard<std::mutex> guard(mutex_);
  if (buckets_.size() >= kManyBuckets && buckets_.count(key.id) == 0) Forget(now);
  const double capacity = std::max(1.0, 2 * rate);
  Bucket& bucket =
      buckets_.try_emplace(key.id, Bucket{rate, capacity, capacity, now}).first->second;
  bucket.Fill(now);
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  const double seconds = (1 - bucket.tokens) / rate;
  if (wait != nullptr) *wait = absl::Seconds(seconds);
  return absl::ResourceExhaustedError(
      absl::StrFormat("key %s may make %g calls a second (%g at once): try again in %.2g s", key.id,
                      rate, capacity, seconds));
}

size_t RateLimits::size() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return buckets_.size();
}

}  // namespace privatemail::server

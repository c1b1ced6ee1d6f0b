#include "server/access/limits.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// From here on, a new bucket first removes full ones.
constexpr size_t kManyBuckets = 1000;

}  // namespace

int64_t MaxSentMessageBytes(const Limits& limits) {
  constexpr int64_t kMaxStreamedMessageBytes = 4 << 20;
  return std::max(limits.max_message_bytes, kMaxStreamedMessageBytes);
}

absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view setting) {
  if (value <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " is ", value, ", more than the limit of ", limit,
                   setting.empty() ? "" : absl::StrCat(" (", setting, ")")));
}

void KeyShares::Take(const std::string& key, int64_t amount) {
  total_ += amount;
  if ((by_key_[key] += amount) == 0) by_key_.erase(key);
}

int64_t KeyShares::Of(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? 0 : found->second;
}

absl::Status ByteQuota::Reservation::Take(int64_t bytes, int64_t limit, const std::string& key) {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  KeyShares& taken = quota_->taken_;
  PM_RETURN_IF_ERROR(CheckLimit(quota_->what_, taken.total() + bytes, limit, quota_->setting_));
  if (!taken.MayTake(key, bytes, limit)) {
    return CheckLimit(absl::StrCat(quota_->what_, " of key ", key), taken.Of(key) + bytes,
                      KeyShares::Half(limit), absl::StrCat("half of ", quota_->setting_));
  }
  taken.Take(key, bytes);
  taken_ += bytes;
  key_ = key;
  return absl::OkStatus();
}

absl::Status ByteQuota::Reservation::Check(int64_t bytes, int64_t limit) const {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  return CheckLimit(quota_->what_, quota_->taken_.total() + bytes, limit, quota_->setting_);
}

void ByteQuota::Reservation::ReduceTo(int64_t bytes) {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  const int64_t released = std::max<int64_t>(0, taken_ - bytes);
  quota_->taken_.Take(key_, -released);
  taken_ -= released;
}

double RateLimiter::Bucket::TokensAt(Clock::time_point now) const {
  const double passed = std::max(0.0, std::chrono::duration<double>(now - filled_at).count());
  return std::min(capacity, tokens + passed * rate);
}

absl::Status RateLimiter::Take(const AccessKey& key, Clock::time_point now, absl::Duration* wait) {
  if (!(key.grant.requests_per_second > 0)) return absl::OkStatus();
  const std::lock_guard<std::mutex> guard(mutex_);
  Bucket& bucket = BucketOf(key, now);
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  const double seconds = (1 - bucket.tokens) / bucket.rate;
  // Two digits, from a hundredth of a second on without an exponent: queries of earlier calls may
  // take hours to pay for.
  const double unit = std::pow(10, std::floor(std::log10(seconds)) - 1);
  if (wait != nullptr) *wait = absl::Seconds(seconds);
  return absl::ResourceExhaustedError(
      absl::StrFormat("key %s may make %g calls a second (%g at once): try again in %.15g s",
                      key.id, bucket.rate, bucket.capacity, std::round(seconds / unit) * unit));
}

void RateLimiter::Owe(const AccessKey& key, Clock::time_point now, int64_t tokens) {
  if (!(key.grant.requests_per_second > 0)) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  BucketOf(key, now).tokens -= static_cast<double>(tokens);
}

RateLimiter::Bucket& RateLimiter::BucketOf(const AccessKey& key, Clock::time_point now) {
  if (buckets_.size() >= kManyBuckets && buckets_.count(key.id) == 0) {
    std::erase_if(buckets_, [now](const auto& bucket) {  // a key without one gets a full one
      return bucket.second.TokensAt(now) == bucket.second.capacity;
    });
  }
  const double rate = key.grant.requests_per_second;
  const double capacity = std::max(1.0, 2 * rate);
  Bucket& bucket =
      buckets_.try_emplace(key.id, Bucket{rate, capacity, capacity, now}).first->second;
  bucket.tokens = bucket.TokensAt(now);
  bucket.filled_at = std::max(bucket.filled_at, now);
  return bucket;
}

}  // namespace privatemail::server

#include "server/access/limits.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

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

int64_t PlacesPerKey(const Limits& limits) {
  return std::max<int64_t>(1, limits.max_concurrent / 2);
}

absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view setting) {
  if (value <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " is ", value, ", more than the limit of ", limit,
                   setting.empty() ? "" : absl::StrCat(" (", setting, ")")));
}

absl::Status ByteQuota::Reservation::Take(int64_t bytes, int64_t limit, const std::string& key) {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  PM_RETURN_IF_ERROR(CheckLimit(quota_->what_, quota_->taken_ + bytes, limit, quota_->setting_));
  const auto found = quota_->taken_by_key_.find(key);
  const int64_t of_key = found == quota_->taken_by_key_.end() ? bytes : found->second + bytes;
  if (!key.empty()) {
    PM_RETURN_IF_ERROR(CheckLimit(absl::StrCat(quota_->what_, " of key ", key), of_key, limit / 2,
                                  absl::StrCat("half of ", quota_->setting_)));
  }
  quota_->taken_by_key_[key] = of_key;
  quota_->taken_ += bytes;
  taken_ += bytes;
  key_ = key;
  return absl::OkStatus();
}

absl::Status ByteQuota::Reservation::Check(int64_t bytes, int64_t limit) const {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  return CheckLimit(quota_->what_, quota_->taken_ + bytes, limit, quota_->setting_);
}

void ByteQuota::Reservation::ReduceTo(int64_t bytes) {
  const std::lock_guard<std::mutex> guard(quota_->mutex_);
  const int64_t released = std::max<int64_t>(0, taken_ - bytes);
  quota_->taken_ -= released;
  taken_ -= released;
  const auto of_key = quota_->taken_by_key_.find(key_);
  if (of_key == quota_->taken_by_key_.end()) return;
  of_key->second -= released;
  if (of_key->second == 0) quota_->taken_by_key_.erase(of_key);
}

LogLineQuota::Verdict LogLineQuota::Take(bool has_key, Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    written_ = 0;
  }
  if (!has_key && written_ == kLinesPerSecond) {
    ++left_out_;
    return {.write = false};
  }
  if (!has_key) ++written_;
  // Reported with the first line of a second or of a caller with a key, not with every line.
  return {.write = true, .left_out = written_ <= 1 ? std::exchange(left_out_, 0) : 0};
}

void RateLimiter::Bucket::Fill(Clock::time_point now) {
  const double passed = std::max(0.0, std::chrono::duration<double>(now - filled_at).count());
  tokens = std::min(capacity, tokens + passed * rate);
  filled_at = std::max(filled_at, now);
}

void RateLimiter::RemoveFullBuckets(Clock::time_point now) {
  for (auto bucket = buckets_.begin(); bucket != buckets_.end();) {
    bucket->second.Fill(now);
    const bool full = bucket->second.tokens == bucket->second.capacity;
    bucket = full ? buckets_.erase(bucket) : std::next(bucket);
  }
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
  if (buckets_.size() >= kManyBuckets && buckets_.count(key.id) == 0) RemoveFullBuckets(now);
  const double rate = key.grant.requests_per_second;
  const double capacity = std::max(1.0, 2 * rate);
  Bucket& bucket =
      buckets_.try_emplace(key.id, Bucket{rate, capacity, capacity, now}).first->second;
  bucket.Fill(now);
  return bucket;
}

size_t RateLimiter::size() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return buckets_.size();
}

}  // namespace privatemail::server

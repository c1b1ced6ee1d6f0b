// Limits and quotas of calls.
#ifndef PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_
#define PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/access_key.h"

namespace privatemail::server {

// A lower value refuses earlier; stored data stays.
struct Limits {
  // Parts of the setting memory (server/config/options.h).
  int64_t max_transport_memory = int64_t{1} << 30;  // bytes of incoming messages, all calls
  int64_t max_parsed_memory = int64_t{1} << 32;     // bytes of parsed messages, all calls
  int64_t max_search_memory = int64_t{1} << 32;    // bytes of searches and their answers, all calls
  int64_t max_request_memory = int64_t{1} << 30;   // bytes of one call other than a build
  int64_t max_build_memory = int64_t{1} << 34;     // bytes of a build or of preparing cells
  int64_t max_resident_memory = int64_t{1} << 62;  // bytes of all collections

  // Settings of the same names (server/config/settings.cc).
  int64_t max_collections = 1000;
  int64_t max_items = 10'000'000;                 // stored items of one collection
  int64_t max_k = 10'000;                         // neighbours a slot
  int64_t max_snapshot_bytes = int64_t{1} << 36;  // scratch files of all running snapshots
  int64_t max_concurrent = 64;                    // running calls

  // Not settings: these values serve every daemon.
  int64_t max_message_bytes = int64_t{64} << 20;  // of a request or unary response
  int64_t max_anchors = 100'000;                  // rows of a new collection's anchors
  int64_t max_dims = 65'536;                      // columns of a feature vector
  double max_create_seconds = 600;                // cells and codebook of a new collection
  int64_t max_queued = 64;                        // waiting calls
  double queue_seconds = 5;                       // maximum wait
  double stream_idle_seconds = 60;                // maximum wait for a client to send or to read
};

// The most bytes of one message that is sent: max_message_bytes, but at least those of streamed
// messages of a fixed size (blocks of cell items, chunks of anchors).
int64_t MaxSentMessageBytes(const Limits& limits);

// RESOURCE_EXHAUSTED if `value` exceeds the limit: "k is 11, more than the limit of 10 (max_k)".
// setting: empty if none has the limit.
absl::Status CheckLimit(absl::string_view what, int64_t value, int64_t limit,
                        absl::string_view setting = "");

// The amounts of a resource that are taken, in total and by key. One key may take half of it, so
// that others find some. Not thread-safe.
class KeyShares {
 public:
  static int64_t Half(int64_t all) { return std::max<int64_t>(1, all / 2); }

  // Whether `key`, unless it is empty, may take `amount` more of a resource of size `all`.
  bool MayTake(const std::string& key, int64_t amount, int64_t all) const {
    return key.empty() || Of(key) + amount <= Half(all);
  }
  // A negative amount is given back.
  void Take(const std::string& key, int64_t amount);
  int64_t total() const { return total_; }
  int64_t Of(const std::string& key) const;

 private:
  int64_t total_ = 0;
  std::map<std::string, int64_t> by_key_;
};

// A byte quota shared by all calls. Thread-safe.
class ByteQuota {
 public:
  // what, setting: for errors, as in CheckLimit; both must outlive the quota.
  ByteQuota(absl::string_view what, absl::string_view setting) : what_(what), setting_(setting) {}
  ByteQuota(const ByteQuota&) = delete;
  ByteQuota& operator=(const ByteQuota&) = delete;

  // The bytes of one call, released on destruction. The quota must outlive it. Not thread-safe.
  class Reservation {
   public:
    explicit Reservation(ByteQuota* quota) : quota_(quota) {}
    ~Reservation() { Release(); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // Adds bytes (>= 0). RESOURCE_EXHAUSTED naming limit and value: all reservations together would
    // exceed `limit`, or those of `key` its share; nothing is added. A reservation has one key.
    absl::Status Take(int64_t bytes, int64_t limit, const std::string& key = "");
    // The status that Take would return.
    absl::Status Check(int64_t bytes, int64_t limit) const;
    void Release() { ReduceTo(0); }
    // Keeps at most `bytes`.
    void ReduceTo(int64_t bytes);

   private:
    ByteQuota* const quota_;
    int64_t taken_ = 0;
    std::string key_;
  };

 private:
  const absl::string_view what_;
  const absl::string_view setting_;
  mutable std::mutex mutex_;  // guards the following
  KeyShares taken_;
};

// One token bucket for each key that has a rate: filled at requests_per_second, with the capacity
// max(1, 2 requests_per_second). A call takes one token, and one more for each query but its first.
// Thread-safe.
class RateLimiter {
 public:
  // Steady, so that setting the machine's clock neither blocks keys nor frees them.
  using Clock = std::chrono::steady_clock;

  // RESOURCE_EXHAUSTED naming the limit and the time to retry, which `wait` gets too unless it is
  // null. Callers may pass `now` out of order.
  absl::Status Take(const AccessKey& key, Clock::time_point now, absl::Duration* wait = nullptr);

  // Takes `tokens` (>= 0) of a call that Take allowed. If there are fewer, the next calls wait.
  void Owe(const AccessKey& key, Clock::time_point now, int64_t tokens);

 private:
  struct Bucket {
    double rate = 0;
    double capacity = 0;
    double tokens = 0;
    Clock::time_point filled_at;

    double TokensAt(Clock::time_point now) const;
  };
  // With mutex_ held: the bucket of a key that has a rate, filled.
  Bucket& BucketOf(const AccessKey& key, Clock::time_point now);

  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;  // by key id
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_LIMITS_H_

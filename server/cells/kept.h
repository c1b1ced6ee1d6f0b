// What was made for one caller, kept for the next who asks for the same.
#ifndef PRIVATEMAIL_SERVER_CELLS_KEPT_H_
#define PRIVATEMAIL_SERVER_CELLS_KEPT_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/one_at_a_time.h"

namespace privatemail::server {

// The values that were asked for last, in bounded memory. Thread-safe.
template <typename Key, typename Value>
class Kept {
 public:
  using Shared = std::shared_ptr<const Value>;

  // What an entry takes beside its value, about.
  static constexpr int64_t kEntryBytes = 256;

  // most_bytes: of all entries together; but the last that was asked for is kept however large it
  // is. bytes_of: a value's.
  Kept(int64_t most_bytes, std::function<int64_t(const Value&)> bytes_of)
      : most_bytes_(most_bytes), bytes_of_(std::move(bytes_of)) {}

  // The value that is kept, if it `serves`, or what `make` makes in its place. One value is made at
  // a time, whoever asks, so that many who ask for the same have it made once, and who calls with
  // many different wishes has one core at most. Those that are kept are had meanwhile. CANCELLED:
  // `cancelled`, which is asked again while the call waits, was true.
  absl::StatusOr<Shared> Get(const Key& key, absl::FunctionRef<bool(const Value&)> serves,
                             absl::FunctionRef<bool()> cancelled, absl::FunctionRef<Value()> make) {
    if (Shared kept = Find(key, serves)) return kept;
    const std::optional<OneAtATime::Turn> turn = making_.Wait(cancelled);
    if (!turn.has_value()) return absl::CancelledError("the caller is gone");
    if (Shared kept = Find(key, serves)) return kept;  // another has made it meanwhile
    auto made = std::make_shared<const Value>(make());
    Keep(key, made);
    return made;
  }

 private:
  struct Entry {
    Shared value;
    typename std::list<Key>::iterator place;
  };
  using Entries = std::map<Key, Entry>;

  Shared Find(const Key& key, absl::FunctionRef<bool(const Value&)> serves) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || !serves(*found->second.value)) return nullptr;
    by_use_.splice(by_use_.end(), by_use_, found->second.place);
    return found->second.value;
  }

  void Keep(const Key& key, Shared value) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (const auto former = entries_.find(key); former != entries_.end()) Forget(former);
    std::list<Key> place = {key};
    const int64_t bytes = kEntryBytes + bytes_of_(*value);
    entries_.emplace(key,
                     Entry{std::move(value), place.begin()});  // throws before anything changed
    by_use_.splice(by_use_.end(), place);
    bytes_ += bytes;
    while (bytes_ > most_bytes_ && entries_.size() > 1) Forget(entries_.find(by_use_.front()));
  }

  void Forget(typename Entries::iterator entry) {
    bytes_ -= kEntryBytes + bytes_of_(*entry->second.value);
    by_use_.erase(entry->second.place);
    entries_.erase(entry);
  }

  const int64_t most_bytes_;
  const std::function<int64_t(const Value&)> bytes_of_;
  OneAtATime making_;
  std::mutex mutex_;  // guards what follows
  Entries entries_;
  std::list<Key> by_use_;  // latest last
  int64_t bytes_ = 0;      // of all entries
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_KEPT_H_

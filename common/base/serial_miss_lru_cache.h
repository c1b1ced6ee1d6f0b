// An LRU cache that computes one missing value at a time.
#ifndef PRIVATEMAIL_COMMON_BASE_SERIAL_MISS_LRU_CACHE_H_
#define PRIVATEMAIL_COMMON_BASE_SERIAL_MISS_LRU_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/cancellable_mutex.h"
#include "common/base/status_macros.h"

namespace privatemail {

// An LRU cache whose misses, also those of different keys, are computed one after the other:
//   - A miss waits until no other computation of this cache runs. A value that is cached by then is
//     returned; otherwise the caller computes it. So callers of one key share a computation, and
//     all misses together take one core. Owners take turns.
//   - Cache hits never wait for a running computation. Values serve all owners.
//   - An owner beyond its entries evicts its own; beyond the bytes, the owners with the most do.
//   - A single value stays cached even if it exceeds the capacity.
// Thread-safe.
template <typename Key, typename Value>
class SerialMissLruCache {
 public:
  using Handle = std::shared_ptr<const Value>;
  using ComputeAll = absl::FunctionRef<absl::StatusOr<std::vector<Value>>(const std::vector<Key>&)>;

  struct Capacity {
    int64_t bytes = 0;                                    // sum of charges
    size_t entries = std::numeric_limits<size_t>::max();  // of one owner
  };

  // charge: bytes that an entry with this value takes, including the cache's own overhead.
  SerialMissLruCache(Capacity capacity, std::function<int64_t(const Value&)> charge)
      : capacity_(capacity), charge_(std::move(charge)) {}

  // The cached value if it `is_usable`, otherwise a computed one, which replaces it. CANCELLED:
  // `cancelled`, polled while the call waits, returned true. An exception of `compute` passes
  // through and leaves the cache unchanged.
  absl::StatusOr<Handle> Get(const Key& key, absl::FunctionRef<bool(const Value&)> is_usable,
                             absl::FunctionRef<bool()> cancelled,
                             absl::FunctionRef<Value()> compute) {
    const auto compute_one = [&](const std::vector<Key>&) {
      std::vector<Value> values;
      values.push_back(compute());
      return absl::StatusOr<std::vector<Value>>(std::move(values));
    };
    PM_ASSIGN_OR_RETURN(const std::vector<Handle> handles,
                        GetAll({&key, 1}, is_usable, cancelled, compute_one, capacity_.bytes));
    return handles.front();
  }

  // Get for several different keys, in their order. compute_all: the values of the keys that have
  // none, in the order given. max_bytes: replaces the capacity's bytes for this insertion. owner:
  // of the values computed here. Errors of `compute_all` pass through and leave the cache
  // unchanged.
  absl::StatusOr<std::vector<Handle>> GetAll(absl::Span<const Key> keys,
                                             absl::FunctionRef<bool(const Value&)> is_usable,
                                             absl::FunctionRef<bool()> cancelled,
                                             ComputeAll compute_all, int64_t max_bytes,
                                             absl::string_view owner = "") {
    std::vector<Handle> handles;
    if (FindAll(keys, is_usable, &handles)) return handles;
    const std::optional<CancellableMutex::Lock> lock = computing_.Acquire(cancelled, owner);
    if (!lock.has_value()) {
      return absl::CancelledError("the caller no longer waits for an answer");
    }
    if (FindAll(keys, is_usable, &handles)) return handles;  // computed while this call waited
    std::vector<Key> missing;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (handles[i] == nullptr) missing.push_back(keys[i]);
    }
    PM_ASSIGN_OR_RETURN(std::vector<Value> values, compute_all(missing));
    std::vector<Handle> computed;
    for (Value& value : values) computed.push_back(std::make_shared<const Value>(std::move(value)));
    InsertAll(missing, computed, max_bytes, std::string(owner));
    auto next = computed.begin();
    for (Handle& handle : handles) {
      if (handle == nullptr) handle = *next++;
    }
    return handles;
  }

  // Null: there is none. Waits for no computation, nor does Insert.
  Handle Find(const Key& key) {
    std::vector<Handle> found;
    FindAll(
        {&key, 1}, [](const Value&) { return true; }, &found);
    return found.front();
  }

  // Adds a value that was made elsewhere; max_bytes, owner: as of GetAll. False: it was evicted.
  bool Insert(const Key& key, Handle value, int64_t max_bytes, const std::string& owner) {
    InsertAll({key}, {std::move(value)}, max_bytes, owner);
    return Find(key) != nullptr;
  }

  void Clear() {
    const std::lock_guard<std::mutex> guard(mutex_);
    entries_.clear();
    by_use_.clear();
    holdings_.clear();
    bytes_ = 0;
  }

  size_t size() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return entries_.size();
  }
  int64_t bytes() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    Handle value;
    std::string owner;
    typename std::list<Key>::iterator place;
  };
  struct Holding {
    int64_t bytes = 0;  // sum of charges
    size_t entries = 0;
  };
  using Entries = std::map<Key, Entry>;

  // Fills in null for keys without a usable value; returns whether there is none such.
  bool FindAll(absl::Span<const Key> keys, absl::FunctionRef<bool(const Value&)> is_usable,
               std::vector<Handle>* handles) {
    handles->clear();
    bool complete = true;
    const std::lock_guard<std::mutex> guard(mutex_);
    for (const Key& key : keys) {
      const auto found = entries_.find(key);
      const bool usable = found != entries_.end() && is_usable(*found->second.value);
      handles->push_back(usable ? found->second.value : nullptr);
      if (usable) by_use_.splice(by_use_.end(), by_use_, found->second.place);
      complete = complete && usable;
    }
    return complete;
  }

  void InsertAll(const std::vector<Key>& keys, const std::vector<Handle>& values, int64_t max_bytes,
                 const std::string& owner) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (size_t i = 0; i < keys.size(); ++i) InsertOne(keys[i], values[i], owner);
    while (holdings_[owner].entries > capacity_.entries) {
      EraseLeastRecent([&](const std::string& one) { return one == owner; });
    }
    while (entries_.size() > 1 && bytes_ > max_bytes) {
      int64_t most = 0;
      for (const auto& [one, holding] : holdings_) most = std::max(most, holding.bytes);
      EraseLeastRecent([&](const std::string& one) { return holdings_[one].bytes == most; });
    }
  }

  // Erases the least recently used entry of an owner that is `chosen`, which has one.
  void EraseLeastRecent(absl::FunctionRef<bool(const std::string& owner)> chosen) {
    Erase(entries_.find(*std::find_if(by_use_.begin(), by_use_.end(), [&](const Key& key) {
      return chosen(entries_.find(key)->second.owner);
    })));
  }

  void InsertOne(const Key& key, Handle value, const std::string& owner) {
    if (const auto former = entries_.find(key); former != entries_.end()) Erase(former);
    std::list<Key> place = {key};
    const int64_t charge = charge_(*value);
    // May throw, before anything has changed.
    Holding& holding = holdings_[owner];
    entries_.emplace(key, Entry{std::move(value), owner, place.begin()});
    by_use_.splice(by_use_.end(), place);
    bytes_ += charge;
    holding.bytes += charge;
    ++holding.entries;
  }

  void Erase(typename Entries::iterator entry) {
    const int64_t charge = charge_(*entry->second.value);
    const auto holding = holdings_.find(entry->second.owner);
    bytes_ -= charge;
    holding->second.bytes -= charge;
    if (--holding->second.entries == 0) holdings_.erase(holding);
    by_use_.erase(entry->second.place);
    entries_.erase(entry);
  }

  const Capacity capacity_;
  const std::function<int64_t(const Value&)> charge_;
  CancellableMutex computing_;
  mutable std::mutex mutex_;  // guards the following
  Entries entries_;
  std::list<Key> by_use_;                    // least recently used first
  int64_t bytes_ = 0;                        // sum of charges
  std::map<std::string, Holding> holdings_;  // of owners that have entries
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_SERIAL_MISS_LRU_CACHE_H_

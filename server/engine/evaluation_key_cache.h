// An LRU cache of searchers' evaluation keys by their digest.
#ifndef PRIVATEMAIL_SERVER_ENGINE_EVALUATION_KEY_CACHE_H_
#define PRIVATEMAIL_SERVER_ENGINE_EVALUATION_KEY_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "common/lattice/evaluator.h"

namespace privatemail::server {

// Held by the server, for all collections: a session uses one set of keys everywhere. Keys tell
// nothing about targets (PRIVACY.md section 9). A searcher whose keys were evicted sends them
// again. Thread-safe.
class EvaluationKeyCache {
 public:
  using Handle = std::shared_ptr<const lattice::EvaluationKeys>;

  // The default holds the keys of some hundred sessions.
  static constexpr int64_t kDefaultBytes = int64_t{256} << 20;

  // capacity_bytes: of the parsed keys; a single set is kept even if it exceeds them.
  explicit EvaluationKeyCache(int64_t capacity_bytes = kDefaultBytes)
      : capacity_bytes_(capacity_bytes) {}

  // Null: there are none with this digest.
  Handle Find(absl::string_view digest);
  // Adds keys under the SHA-256 of their serialised form, for the caller who sent them: the id of
  // an access key. Evicts the least recently used keys of the caller that has most, so that nobody
  // evicts those of all others, until all fit the capacity and max_bytes. False: these alone take
  // more than max_bytes.
  bool Add(const std::string& digest, Handle keys, const std::string& caller,
           int64_t max_bytes = std::numeric_limits<int64_t>::max());
  void Clear();

  size_t size() const;    // sets of keys
  int64_t bytes() const;  // of all keys; may exceed the capacity by one set

 private:
  struct Entry {
    std::string digest;
    Handle keys;
    std::string caller;
  };

  // With mutex_ held: the entry to evict, never the newest.
  std::list<Entry>::iterator ChooseEvictedLocked();

  const int64_t capacity_bytes_;
  mutable std::mutex mutex_;  // guards the following
  std::list<Entry> entries_;  // the most recently used first
  std::map<absl::string_view, std::list<Entry>::iterator> by_digest_;  // views of entries_
  std::map<std::string, int64_t> bytes_by_caller_;
  int64_t bytes_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_EVALUATION_KEY_CACHE_H_

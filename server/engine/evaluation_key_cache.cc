#include "server/engine/evaluation_key_cache.h"

#include <algorithm>
#include <utility>

namespace privatemail::server {
namespace {

int64_t BytesOf(const lattice::EvaluationKeys& keys) {
  return static_cast<int64_t>(lattice::EvaluationKeys::Memory(keys.delta));
}

}  // namespace

EvaluationKeyCache::Handle EvaluationKeyCache::Find(absl::string_view digest) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->keys;
}

bool EvaluationKeyCache::Add(const std::string& digest, Handle keys, int64_t max_bytes) {
  if (BytesOf(*keys) > max_bytes) return false;
  std::list<Entry> evicted;  // destroyed after the lock is released: they are large
  const std::lock_guard<std::mutex> guard(mutex_);
  if (by_digest_.count(digest) > 0) return true;
  entries_.push_front({digest, std::move(keys)});
  by_digest_[entries_.front().digest] = entries_.begin();
  bytes_ += BytesOf(*entries_.front().keys);
  while (bytes_ > std::min(capacity_bytes_, max_bytes) && entries_.size() > 1) {
    bytes_ -= BytesOf(*entries_.back().keys);
    by_digest_.erase(entries_.back().digest);
    evicted.splice(evicted.begin(), entries_, std::prev(entries_.end()));
  }
  return true;
}

void EvaluationKeyCache::Clear() {
  std::list<Entry> all;  // destroyed after the lock is released
  const std::lock_guard<std::mutex> guard(mutex_);
  by_digest_.clear();
  all.swap(entries_);
  bytes_ = 0;
}

size_t EvaluationKeyCache::size() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return entries_.size();
}

int64_t EvaluationKeyCache::bytes() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return bytes_;
}

}  // namespace privatemail::server

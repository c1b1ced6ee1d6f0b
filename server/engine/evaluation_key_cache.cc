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

bool EvaluationKeyCache::Add(const std::string& digest, Handle keys, const std::string& caller,
                             int64_t max_bytes) {
  if (BytesOf(*keys) > max_bytes) return false;
  std::list<Entry> evicted;  // destroyed after the lock is released: they are large
  const std::lock_guard<std::mutex> guard(mutex_);
  if (by_digest_.count(digest) > 0) return true;
  entries_.push_front({digest, std::move(keys), caller});
  by_digest_[entries_.front().digest] = entries_.begin();
  bytes_ += BytesOf(*entries_.front().keys);
  bytes_by_caller_[caller] += BytesOf(*entries_.front().keys);
  while (bytes_ > std::min(capacity_bytes_, max_bytes) && entries_.size() > 1) {
    const auto chosen = ChooseEvictedLocked();
    const int64_t bytes = BytesOf(*chosen->keys);
    bytes_ -= bytes;
    const auto of_caller = bytes_by_caller_.find(chosen->caller);
    if ((of_caller->second -= bytes) == 0) bytes_by_caller_.erase(of_caller);
    by_digest_.erase(chosen->digest);
    evicted.splice(evicted.begin(), entries_, chosen);
  }
  return true;
}

std::list<EvaluationKeyCache::Entry>::iterator EvaluationKeyCache::ChooseEvictedLocked() {
  const auto most = std::max_element(
      bytes_by_caller_.begin(), bytes_by_caller_.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  auto entry = std::prev(entries_.end());
  while (entry != entries_.begin() && bytes_by_caller_[entry->caller] < most->second) --entry;
  return entry == entries_.begin() ? std::prev(entries_.end()) : entry;
}

void EvaluationKeyCache::Clear() {
  std::list<Entry> all;  // destroyed after the lock is released
  const std::lock_guard<std::mutex> guard(mutex_);
  by_digest_.clear();
  bytes_by_caller_.clear();
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

#include "server/cells/kept_lists.h"

#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"

namespace privatemail {
namespace {

// How often a call that waits looks whether its caller is still there.
constexpr std::chrono::milliseconds kLookAgain{50};

}  // namespace

KeptLists::List KeptLists::Find(const Key& key, int64_t length) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || std::ssize(*found->second.list) < length) return nullptr;
  by_use_.splice(by_use_.end(), by_use_, found->second.place);
  return found->second.list;
}

void KeptLists::Keep(const Key& key, List list) {
  const auto forget = [&](std::map<Key, Entry>::iterator entry) {
    rows_ -= std::ssize(*entry->second.list);
    by_use_.erase(entry->second.place);
    entries_.erase(entry);
  };
  if (const auto shorter = entries_.find(key); shorter != entries_.end()) forget(shorter);
  rows_ += std::ssize(*list);
  while (rows_ > most_rows_ && !by_use_.empty()) forget(entries_.find(by_use_.front()));
  entries_[key] = {std::move(list), by_use_.insert(by_use_.end(), key)};
}

absl::StatusOr<KeptLists::List> KeptLists::Get(const Key& key, int64_t length,
                                               absl::FunctionRef<bool()> cancelled,
                                               absl::FunctionRef<std::vector<int32_t>()> make) {
  std::unique_lock<std::mutex> lock(mutex_);
  List list = Find(key, length);
  while (list == nullptr && making_) {
    if (cancelled()) return absl::CancelledError("the caller is gone");
    made_.wait_for(lock, kLookAgain);
    list = Find(key, length);  // another may have made it meanwhile
  }
  if (list != nullptr) return list;
  if (cancelled()) return absl::CancelledError("the caller is gone");

  making_ = true;
  lock.unlock();
  const absl::Cleanup next = [&] {  // where it cannot be made, too
    if (!lock.owns_lock()) lock.lock();
    making_ = false;
    made_.notify_all();
  };
  list = std::make_shared<const std::vector<int32_t>>(make());
  lock.lock();
  Keep(key, list);
  return list;
}

}  // namespace privatemail

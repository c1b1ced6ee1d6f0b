#include "server/cells/kept_lists.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"

namespace privatemail {

KeptLists::List KeptLists::Find(const Key& key, int64_t length) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || std::ssize(*found->second.list) < length) return nullptr;
  by_use_.splice(by_use_.end(), by_use_, found->second.place);
  return found->second.list;
}

void KeptLists::Keep(const Key& key, List list) {
  const std::lock_guard<std::mutex> guard(mutex_);
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
  if (List kept = Find(key, length)) return kept;
  const std::optional<OneAtATime::Turn> turn = making_.Wait(cancelled);
  if (!turn.has_value()) return absl::CancelledError("the caller is gone");
  if (List kept = Find(key, length)) return kept;  // another has made it meanwhile
  auto made = std::make_shared<const std::vector<int32_t>>(make());
  Keep(key, made);
  return made;
}

}  // namespace privatemail

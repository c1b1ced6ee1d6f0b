// What several jobs need and the first of them makes.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace privatemail::client {

// Values by their keys, each made when it is first asked for and kept, errors too, unless there is
// a limit: then only as many as that, those asked for last. Thread-safe; who asks for what another
// thread is making waits for it.
template <typename Key, typename T>
class MadeOnce {
 public:
  using Value = absl::StatusOr<std::shared_ptr<const T>>;

  explicit MadeOnce(size_t most = std::numeric_limits<size_t>::max()) : most_(most) {}

  Value Get(const Key& key, absl::FunctionRef<Value()> make) {
    const std::shared_ptr<Slot> slot = SlotOf(key);
    std::call_once(slot->once, [&] { slot->value = make(); });
    return slot->value;
  }

 private:
  struct Slot {
    std::once_flag once;
    Value value;
    uint64_t asked = 0;  // when, by a count
  };

  std::shared_ptr<Slot> SlotOf(const Key& key) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::shared_ptr<Slot>& place = slots_[key];
    if (place == nullptr) place = std::make_shared<Slot>();
    place->asked = ++asked_;
    std::shared_ptr<Slot> slot = place;
    if (slots_.size() > most_) {
      slots_.erase(std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
        return a.second->asked < b.second->asked;
      }));
    }
    return slot;
  }

  const size_t most_;
  std::mutex mutex_;  // guards the map and the counts, not what is in its slots
  uint64_t asked_ = 0;
  std::map<Key, std::shared_ptr<Slot>> slots_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_

// What several jobs need and the first of them makes.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_

#include <map>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace privatemail {

// Values by their keys, each made when it is first asked for and kept, errors too. Thread-safe; who
// asks for what another thread is making waits for it.
template <typename Key, typename T>
class MadeOnce {
 public:
  using Value = absl::StatusOr<std::shared_ptr<const T>>;

  Value Get(const Key& key, absl::FunctionRef<Value()> make) {
    Slot* slot = nullptr;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      std::unique_ptr<Slot>& place = slots_[key];
      if (place == nullptr) place = std::make_unique<Slot>();
      slot = place.get();
    }
    std::call_once(slot->once, [&] { slot->value = make(); });
    return slot->value;
  }

 private:
  struct Slot {
    std::once_flag once;
    Value value;
  };

  std::mutex mutex_;  // guards the map, not what is in its slots
  std::map<Key, std::unique_ptr<Slot>> slots_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_MADE_ONCE_H_

// A poll of a condition, in place of sleeps of a fixed time.
#ifndef PRIVATEMAIL_TESTS_TESTING_WAIT_UNTIL_H_
#define PRIVATEMAIL_TESTS_TESTING_WAIT_UNTIL_H_

#include <chrono>
#include <thread>

namespace privatemail {

// Returns true once condition() holds, false if it does not within `timeout`.
template <typename Condition>
[[nodiscard]] bool WaitUntil(Condition condition,
                             std::chrono::milliseconds timeout = std::chrono::minutes(5)) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_WAIT_UNTIL_H_

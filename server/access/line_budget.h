// How much is written down about callers whom nobody let in.
#ifndef PRIVATEMAIL_SERVER_ACCESS_LINE_BUDGET_H_
#define PRIVATEMAIL_SERVER_ACCESS_LINE_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <mutex>

namespace privatemail::server {

// Logs have a largest size, from which on the oldest lines go: whoever may add lines without end
// may erase what others did. Callers without a valid key get so many lines a second together, all
// others as many as they like. Thread-safe.
class LineBudget {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kLinesPerSecond = 100;

  struct Verdict {
    bool write = true;
    uint64_t left_out = 0;  // lines that were not written before this one, each told of once
  };
  Verdict Take(bool has_key, Clock::time_point now);

 private:
  std::mutex mutex_;
  Clock::time_point second_;  // when the present one began
  uint64_t written_ = 0;      // in it
  uint64_t left_out_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_LINE_BUDGET_H_

// Threads that are kept for the next piece of work.
#ifndef PRIVATEMAIL_COMMON_BASE_WORKERS_H_
#define PRIVATEMAIL_COMMON_BASE_WORKERS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace privatemail {

// As many threads as were ever at work at once: whoever gives work bounds how much. Thread-safe.
class Workers {
 public:
  Workers() = default;
  // Waits for all work, what is not begun included.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Begins it at once, or, when the system has no more threads, as soon as other work ends. Throws
  // std::system_error, and the work is not done, when there is no thread at all.
  void Run(std::function<void()> work);

 private:
  void Work();
  void AddThread();

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_WORKERS_H_

// What makes answers better or possible after they could be given without it.
#ifndef PRIVATEMAIL_SERVER_ENGINE_LATER_WORK_H_
#define PRIVATEMAIL_SERVER_ENGINE_LATER_WORK_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace privatemail::server {

// Work that nobody waits for, such as an approximate index for an embedding that the exact one
// answers for meanwhile: one piece after the other, in the order in which they were added, on a
// thread of low priority. Thread-safe.
class LaterWork {
 public:
  // When `stopped` becomes true it gives up, which may take seconds. Throws nothing.
  using Task = std::function<void(const std::atomic<bool>& stopped)>;

  LaterWork() : thread_([this] { Run(); }) {}
  ~LaterWork();  // stops the one under way, and does none of those that wait

  void Add(Task task);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_LATER_WORK_H_

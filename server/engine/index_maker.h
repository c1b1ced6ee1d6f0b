// Makes approximate indexes beside everything else.
#ifndef PRIVATEMAIL_SERVER_ENGINE_INDEX_MAKER_H_
#define PRIVATEMAIL_SERVER_ENGINE_INDEX_MAKER_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "server/engine/retriever.h"

namespace privatemail {

// One after the other, in the order in which they were added, on a thread of low priority; who
// answers is exact until then. A retriever that nobody else has any more is passed over.
// Thread-safe.
class IndexMaker {
 public:
  IndexMaker() : thread_([this] { Run(); }) {}
  ~IndexMaker();  // gives up the one under way, which may take seconds, and those that wait

  void Add(const std::shared_ptr<const Retriever>& retriever);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<const Retriever>> waiting_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ENGINE_INDEX_MAKER_H_

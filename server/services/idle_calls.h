// Ends calls whose callers are idle.
#ifndef PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_
#define PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

#include <grpcpp/server_context.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace privatemail::server {

// Nothing in gRPC bounds how long a caller takes to send its next message, or to take the next part
// of an answer: who does neither would hold a place for ever. One thread looks after all of them
// and ends the call of whoever lets one wait for too long. Thread-safe; outlives its watches.
class IdleCalls {
  using Clock = std::chrono::steady_clock;

 public:
  IdleCalls() : thread_([this] { Run(); }) {}
  ~IdleCalls();
  IdleCalls(const IdleCalls&) = delete;
  IdleCalls& operator=(const IdleCalls&) = delete;

  // While it lives and End was not called, the call waits for its caller. After `seconds` the
  // caller gets the status TimedOut, and what waits for it fails.
  class Watch {
   public:
    Watch(IdleCalls* calls, grpc::CallbackServerContext* context, double seconds);
    ~Watch() { End(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Whether the call was ended.
    bool End();

   private:
    friend class IdleCalls;

    IdleCalls* const calls_;
    grpc::CallbackServerContext* const context_;
    const double seconds_;
    std::multimap<Clock::time_point, Watch*>::iterator place_;
    bool watching_ = true;
    bool ended_ = false;
  };

  // DEADLINE_EXCEEDED naming the limit and its value.
  static absl::Status TimedOut(double seconds);

 private:
  void Run();
  void EndDue();

  std::mutex mutex_;  // guards the following, and a watch from its beginning to its end
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Watch*> watches_;       // by their deadlines
  Clock::time_point looks_at_ = Clock::time_point::max();  // when the thread wakes by itself
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

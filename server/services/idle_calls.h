// Idle timeouts of calls that wait for their callers.
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

// Ends calls whose caller neither sends the next message nor takes the next part of an answer
// within a timeout; gRPC bounds neither. One timer thread serves all calls. Thread-safe; outlives
// its watches.
class IdleCalls {
  using Clock = std::chrono::steady_clock;

 public:
  IdleCalls() : thread_([this] { Run(); }) {}
  ~IdleCalls();
  IdleCalls(const IdleCalls&) = delete;
  IdleCalls& operator=(const IdleCalls&) = delete;

  // The caller is to send a message, or to take an answer.
  enum class For { kMessage, kAnswer };

  // Until End or destruction the call waits for its caller. After `seconds` the call ends, and
  // pending operations on it fail.
  class Watch {
   public:
    Watch(IdleCalls* calls, grpc::CallbackServerContext* context, For what, double seconds);
    ~Watch() { End().IgnoreError(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Stops watching. An error if the call was ended: DEADLINE_EXCEEDED naming the limit and its
    // value, or that of EndUntaken.
    absl::Status End();

   private:
    friend class IdleCalls;

    IdleCalls* const calls_;
    grpc::CallbackServerContext* const context_;
    const For what_;
    const double seconds_;
    const Clock::time_point since_ = Clock::now();
    std::multimap<Clock::time_point, Watch*>::iterator position_;
    bool watching_ = true;
    absl::Status end_;
  };

  // For a server without a free place: ends calls with RESOURCE_EXHAUSTED whose answer was not
  // taken for kUntakenSeconds.
  void EndUntaken();
  static constexpr double kUntakenSeconds = 4;

 private:
  using Watches = std::multimap<Clock::time_point, Watch*>;
  // Calls to be ended once mutex_ is free, which their destruction may take in the same thread.
  class Ended;

  void Run();
  // The following require mutex_.
  void EndExpired(Ended* ended);
  Watches::iterator EndCall(Watches::iterator watch, absl::Status reason, Ended* ended);

  std::mutex mutex_;  // guards the following and all watches
  std::condition_variable changed_;
  Watches watches_;                                        // by deadline
  Clock::time_point wakes_at_ = Clock::time_point::max();  // next timeout of the thread
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

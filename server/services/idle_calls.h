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

// Cancels calls whose caller neither sends the next message nor takes the next part of an answer
// within a timeout; gRPC bounds neither. One timer thread serves all calls. Thread-safe; outlives
// its watches.
class IdleCalls {
  using Clock = std::chrono::steady_clock;

 public:
  IdleCalls() : thread_([this] { Run(); }) {}
  ~IdleCalls();
  IdleCalls(const IdleCalls&) = delete;
  IdleCalls& operator=(const IdleCalls&) = delete;

  // Until End or destruction the call waits for its caller. After `seconds` the call ends with
  // TimeoutError, and pending operations on it fail.
  class Watch {
   public:
    Watch(IdleCalls* calls, grpc::CallbackServerContext* context, double seconds);
    ~Watch() { End(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Stops watching; returns whether the timeout ended the call.
    bool End();

   private:
    friend class IdleCalls;

    IdleCalls* const calls_;
    grpc::CallbackServerContext* const context_;
    const double seconds_;
    std::multimap<Clock::time_point, Watch*>::iterator position_;
    bool watching_ = true;
    bool ended_ = false;
  };

  // DEADLINE_EXCEEDED naming the limit and its value.
  static absl::Status TimeoutError(double seconds);

 private:
  void Run();
  void EndExpired();

  std::mutex mutex_;  // guards the following and all watches
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Watch*> watches_;       // by deadline
  Clock::time_point wakes_at_ = Clock::time_point::max();  // next timeout of the thread
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

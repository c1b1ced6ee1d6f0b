// Idle timeouts of calls that wait for their callers.
#ifndef PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_
#define PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

#include <grpcpp/server_context.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/arriving_messages.h"

namespace privatemail::server {

// Ends calls whose caller neither sends the next message nor takes the next part of an answer
// within a timeout, or whose message keeps those of other keys waiting for kUntakenSeconds; gRPC
// bounds neither. One thread looks at all calls ten times a second, and time in which it does not
// run does not count: callers on a busy machine are not idle. Thread-safe; outlives its watches.
class IdleCalls {
 public:
  IdleCalls() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  IdleCalls(const IdleCalls&) = delete;
  IdleCalls& operator=(const IdleCalls&) = delete;

  // Until End or destruction the call waits for its caller, to send a message that has the place
  // `message`, or, if that is null, to take an answer. After `seconds` the call ends, and pending
  // operations on it fail. The place must outlive the watch.
  class Watch {
   public:
    Watch(IdleCalls* calls, grpc::CallbackServerContext* context,
          const ArrivingMessages::Place* message, double seconds);
    ~Watch() { End().IgnoreError(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Stops watching. An error if the call was ended: DEADLINE_EXCEEDED with the timeout, or that
    // of EndUntaken.
    absl::Status End();

   private:
    friend class IdleCalls;

    IdleCalls* const calls_;
    grpc::CallbackServerContext* const context_;
    const ArrivingMessages::Place* const message_;
    const double seconds_;
    absl::Duration since_;
    std::list<Watch*>::iterator position_;
    bool watching_ = true;
    absl::Status end_;
  };

  // For a server without a free place: ends calls with RESOURCE_EXHAUSTED whose answer was not
  // taken for kUntakenSeconds.
  void EndUntaken();
  static constexpr double kUntakenSeconds = 4;

 private:
  void Run(const std::stop_token& stop);
  // Ends the calls for which `reason`, which is given the seconds that they waited, is an error.
  void End(absl::FunctionRef<absl::Status(const Watch& watch, double seconds)> reason);

  std::mutex mutex_;  // guards the following and all watches
  std::condition_variable_any stopped_;
  std::list<Watch*> watches_;
  absl::Duration now_;   // since the start
  std::jthread thread_;  // last: it uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_IDLE_CALLS_H_

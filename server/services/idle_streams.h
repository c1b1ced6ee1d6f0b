// Ends streams whose callers are idle.
#ifndef PRIVATEMAIL_SERVER_SERVICES_IDLE_STREAMS_H_
#define PRIVATEMAIL_SERVER_SERVICES_IDLE_STREAMS_H_

#include <grpcpp/server_context.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace privatemail {

// A synchronous read or write of gRPC has no deadline of its own: a caller who sends nothing, or
// takes nothing, would hold a thread and a place for ever. One thread looks after all of them and
// ends the call of whoever lets one wait for too long. Thread-safe; outlives its watches.
class IdleStreams {
 public:
  IdleStreams() : thread_([this] { Run(); }) {}
  ~IdleStreams();
  IdleStreams(const IdleStreams&) = delete;
  IdleStreams& operator=(const IdleStreams&) = delete;

  // While it lives and End was not called, the call waits for its caller. After `seconds` the
  // caller gets the status TimedOut, and the read or write under way fails.
  class Watch {
   public:
    Watch(IdleStreams* streams, grpc::ServerContext* context, double seconds);
    ~Watch() { End(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Whether the call was ended.
    bool End();

   private:
    friend class IdleStreams;

    IdleStreams* const streams_;
    grpc::ServerContext* const context_;
    const double seconds_;
    std::multimap<std::chrono::steady_clock::time_point, Watch*>::iterator place_;
    bool watching_ = true;
    bool ended_ = false;
  };

  // DEADLINE_EXCEEDED naming the limit and its value.
  static absl::Status TimedOut(double seconds);

 private:
  void Run();

  std::mutex mutex_;  // guards the following, and a watch from its beginning to its end
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, Watch*> watches_;  // by their deadlines
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_IDLE_STREAMS_H_

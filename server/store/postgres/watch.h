// Learns of changes that other daemons make.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_WATCH_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/postgres/connection.h"
#include "server/store/store.h"

namespace privatemail::server::postgres {

// A thread with a session of its own that listens (LISTEN). Whenever it has connected it calls
// `changed` after it listens, so nothing that was committed while it was away is missed; it asks
// the server for a sign of life when nothing was heard for a while.
class Watch final : public ChangeWatch {
 public:
  // The target must outlive the watch.
  Watch(const Target& target, std::function<absl::Status()> changed,
        std::function<void(const absl::Status&)> report);
  ~Watch() override;

 private:
  void Run();
  // Until the session fails or the watch is to end.
  absl::Status Listen();
  // Calls `changed` until it succeeds or the watch is to end.
  void Tell();
  // Unless it was the last that was reported.
  void Report(const absl::Status& status);
  // True when the watch is to end; otherwise waits for the time, or for something to read.
  bool StopWithin(absl::Duration time, int socket = -1) const;

  const Target& target_;
  const std::function<absl::Status()> changed_;
  const std::function<void(const absl::Status&)> report_;
  absl::Status reported_;  // last
  int stop_ = -1;          // readable once the watch is to end
  std::thread thread_;
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_WATCH_H_

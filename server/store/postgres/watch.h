// Change notifications of other daemons (LISTEN/NOTIFY).
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

// A thread with its own session. After each connection it calls `changed` once it listens, so that
// no commit during an outage is missed. It probes an idle server.
class Watch final : public ChangeWatch {
 public:
  // The connection info must outlive the watch.
  Watch(const ConnectionInfo& info, std::function<absl::Status()> changed,
        std::function<void(const absl::Status&)> report);
  ~Watch() override;

 private:
  void Run();
  // Returns when the session fails or the watch ends.
  absl::Status Listen();
  // Calls `changed` until it succeeds or the watch ends.
  void NotifyChanged();
  // Skips a repeated status.
  void Report(const absl::Status& status);
  // Waits for the time or for input; true: the watch ends.
  bool StopWithin(absl::Duration time, int socket = -1) const;

  const ConnectionInfo& info_;
  const std::function<absl::Status()> changed_;
  const std::function<void(const absl::Status&)> report_;
  absl::Status reported_;  // last
  int stop_ = -1;          // readable when the watch ends
  std::thread thread_;
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_WATCH_H_

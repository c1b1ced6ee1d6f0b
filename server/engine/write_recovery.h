// A poller that makes a read-only catalog take writes again.
#ifndef PRIVATEMAIL_SERVER_ENGINE_WRITE_RECOVERY_H_
#define PRIVATEMAIL_SERVER_ENGINE_WRITE_RECOVERY_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

// Tries on its own thread every kInterval until the catalog takes writes, which it then does for
// good. Without a thread if it takes them from the start.
class WriteRecovery {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(2);

  // report: called by the constructor with the reason why the catalog is read-only, and with OK
  // once it takes writes; never if it takes them from the start. The catalog must outlive the
  // object.
  using Report = std::function<void(const absl::Status&)>;
  WriteRecovery(Catalog* catalog, Report report);
  ~WriteRecovery();

 private:
  void Run();

  Catalog* const catalog_;
  const Report report_;
  std::mutex mutex_;  // guards the following
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_WRITE_RECOVERY_H_

// PostgresStore: change notifications of other daemons (LISTEN/NOTIFY).
#include <poll.h>
#include <sys/eventfd.h>

#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cancellation.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"
#include "server/store/postgres/postgres_store.h"

namespace privatemail::server {
namespace postgres {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr absl::Duration kSilence = absl::Seconds(15);
constexpr absl::Duration kMaxProbe = absl::Seconds(5);

// A thread with its own session. After each connection it calls `changed` once it listens, so that
// no commit during an outage is missed. It probes an idle server.
class Watch final : public ChangeWatch {
 public:
  // The connection info must outlive the watch.
  Watch(const ConnectionInfo& info, std::function<absl::Status()> changed,
        std::function<void(const absl::Status&)> report)
      : info_(info),
        changed_(std::move(changed)),
        report_(std::move(report)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { Run(); }) {}
  ~Watch() override { (void)!::eventfd_write(stop_.get(), 1); }

 private:
  void Run() {
    const CancellationScope scope([this] { return StopWithin(absl::ZeroDuration()); });
    do {
      if (const absl::Status status = Listen(); !status.ok()) Report(status);
    } while (!StopWithin(kRetry));
  }

  // Returns when the session fails or the watch ends.
  absl::Status Listen() {
    PM_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection, Connection::Open(info_));
    PM_RETURN_IF_ERROR(connection->Execute(absl::StrCat("LISTEN ", kChangeChannel)));
    NotifyChanged();
    while (!StopWithin(kSilence, connection->socket())) {
      PM_ASSIGN_OR_RETURN(bool any, connection->TakeNotifications());
      if (!any) {
        // An idle, lost or frozen connection: a query tells which.
        const Stopwatch probing;
        const CancellationScope scope(
            [&] { return StopWithin(absl::ZeroDuration()) || probing.Elapsed() > kMaxProbe; });
        PM_RETURN_IF_ERROR(connection->Execute("SELECT 1"));
        PM_ASSIGN_OR_RETURN(any, connection->TakeNotifications());
      }
      if (any) NotifyChanged();
    }
    return absl::OkStatus();
  }

  // Calls `changed` until it succeeds or the watch ends.
  void NotifyChanged() {
    absl::Status status;
    do {
      try {
        status = changed_();
      } catch (const std::exception& error) {  // out of memory
        status = absl::ResourceExhaustedError(
            absl::StrCat("changes of other daemons cannot be taken over yet: ", error.what()));
      }
      Report(status);
    } while (!status.ok() && !StopWithin(kRetry));
  }

  // Skips a repeated status.
  void Report(const absl::Status& status) {
    if (status == reported_) return;
    reported_ = status;
    if (report_) report_(status);
  }

  // Waits for the time or for input; true: the watch ends.
  bool StopWithin(absl::Duration time, int socket = -1) const {
    pollfd ready[] = {{stop_.get(), POLLIN, 0},
                      {socket, POLLIN, 0}};  // a negative socket is ignored
    ::poll(ready, 2, static_cast<int>(absl::ToInt64Milliseconds(time)));
    return ready[0].revents != 0;
  }

  const ConnectionInfo& info_;
  const std::function<absl::Status()> changed_;
  const std::function<void(const absl::Status&)> report_;
  absl::Status reported_;  // last
  const Descriptor stop_;  // readable when the watch ends
  std::jthread thread_;    // last: it uses the members above
};

}  // namespace
}  // namespace postgres

std::unique_ptr<ChangeWatch> PostgresStore::Watch(std::function<absl::Status()> changed,
                                                  std::function<void(const absl::Status&)> report) {
  return std::make_unique<postgres::Watch>(pool_.info(), std::move(changed), std::move(report));
}

}  // namespace privatemail::server

// libpq behind statuses: where to connect, and one session.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/postgres/values.h"

namespace privatemail::server::postgres {

// Where a database is and how to get in. Holds secrets, and prints none.
class Target {
 public:
  // conninfo: as libpq takes it, "host=db user=me password=..." or "postgresql://me:...@db/name".
  // Timeouts that it does not name get values, so that no call waits for ever. INVALID_ARGUMENT,
  // which does not repeat any of it: it may hold a password.
  static absl::StatusOr<Target> Parse(const std::string& conninfo);

  // `text` in one line, without the passwords.
  std::string Redacted(absl::string_view text) const;

  const std::vector<std::pair<std::string, std::string>>& options() const { return options_; }

 private:
  std::vector<std::pair<std::string, std::string>> options_;  // keyword and value
  std::vector<std::string> secrets_;
};

// Longest time that one statement may take, and one wait for a lock.
inline constexpr absl::Duration kStatementTimeout = absl::Minutes(2);
inline constexpr absl::Duration kLockTimeout = absl::Seconds(30);

// A session. One thread at a time. Failures are statuses that name the database, repeat neither
// values nor passwords, and are UNAVAILABLE ("the store is unavailable: ...") when the server
// cannot be reached, is starting, stopping or gone, or has no connection left; DEADLINE_EXCEEDED
// when a statement or a lock took too long; ABORTED for a deadlock; RESOURCE_EXHAUSTED for space,
// memory and limits; FAILED_PRECONDITION for what an operator has to put right (who may log in,
// rights, a read-only server); DATA_LOSS for damage; INTERNAL otherwise.
class Connection {
 public:
  // A session whose commits are durable when they are acknowledged. FAILED_PRECONDITION also for a
  // server before version 15 or one that runs with fsync or full_page_writes off, whose commits
  // would not survive a loss of power.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const Target& target);

  // SQL without values; any number of statements.
  absl::Status Execute(const std::string& sql);
  // One statement.
  absl::StatusOr<Result> Query(const std::string& sql, const Parameters& parameters = {});

  // False once a failure has left the session unfit for more; then it must be closed.
  bool usable() const { return usable_ && PQstatus(handle_.get()) == CONNECTION_OK; }
  // Within a transaction, be it failed or not.
  bool in_transaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }

  int socket() const { return PQsocket(handle_.get()); }
  // Reads what has arrived, without waiting; true when there were notifications, which are then
  // gone. UNAVAILABLE.
  absl::StatusOr<bool> TakeNotifications();

 private:
  struct Finish {
    void operator()(PGconn* handle) const { PQfinish(handle); }
  };
  Connection(const Target& target, PGconn* handle);

  absl::Status Prepare();
  absl::Status Unavailable(absl::string_view reason) const;
  absl::Status ErrorOf(const PGresult* result) const;
  // Waits until the answer to what was sent is complete; the session is unusable when it never is.
  absl::StatusOr<Result> Await();
  absl::Status WaitUntilReady(absl::Time deadline);

  const Target* target_;
  std::unique_ptr<PGconn, Finish> handle_;
  std::string place_;  // "database D at HOST:PORT"
  bool usable_ = true;
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_

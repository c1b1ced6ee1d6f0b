// A PostgreSQL connection: libpq with statuses.
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

// Address and login of a database. Holds secrets and never prints them.
class ConnectionInfo {
 public:
  // conninfo: of libpq, "host=db user=me password=..." or "postgresql://me:...@db/name". Adds
  // default timeouts. INVALID_ARGUMENT, without repeating it: it may hold a password.
  static absl::StatusOr<ConnectionInfo> Parse(const std::string& conninfo);

  // `text` in one line, without the passwords.
  std::string Redacted(absl::string_view text) const;

  const std::vector<std::pair<std::string, std::string>>& options() const { return options_; }

 private:
  std::vector<std::pair<std::string, std::string>> options_;  // keyword and value
  std::vector<std::string> secrets_;
};

// Maximum times of a statement and of a wait for a lock.
inline constexpr absl::Duration kStatementTimeout = absl::Minutes(2);
inline constexpr absl::Duration kLockTimeout = absl::Seconds(30);

// A session. Not thread-safe. Errors name the database and repeat neither values nor passwords:
//   UNAVAILABLE          "the store is unavailable: ...": the server cannot be reached, is starting
//                        or stopping, or has no connection left
//   DEADLINE_EXCEEDED    timeout of a statement or lock
//   ABORTED              deadlock
//   RESOURCE_EXHAUSTED   space, memory, limits
//   FAILED_PRECONDITION  login, rights, a read-only server
//   DATA_LOSS            damage
//   INTERNAL             anything else
class Connection {
 public:
  // Acknowledged commits are durable. FAILED_PRECONDITION also: a server before version 15, or with
  // fsync or full_page_writes off.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ConnectionInfo& info);

  // Any number of statements without parameters.
  absl::Status Execute(const std::string& sql);
  // One statement.
  absl::StatusOr<Result> Query(const std::string& sql, const Parameters& parameters = {});

  // COPY ... FROM STDIN (FORMAT binary) of less than 1 GiB of CopyRows.
  absl::StatusOr<Result> Copy(const std::string& sql, absl::string_view rows);

  // False after a failure that requires closing the session.
  bool usable() const { return usable_ && PQstatus(handle_.get()) == CONNECTION_OK; }
  // Also in a failed transaction.
  bool in_transaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }

  int socket() const { return PQsocket(handle_.get()); }
  // Consumes notifications that have arrived, without waiting; true if there were any. UNAVAILABLE.
  absl::StatusOr<bool> TakeNotifications();

 private:
  struct Finish {
    void operator()(PGconn* handle) const { PQfinish(handle); }
  };
  Connection(const ConnectionInfo& info, PGconn* handle);

  absl::Status Prepare();
  absl::Status Unavailable(absl::string_view reason) const;
  absl::Status ErrorOf(const PGresult* result) const;
  // Waits for the complete result; `copied` is what a COPY takes. After a timeout the session is
  // unusable.
  absl::StatusOr<Result> Await(absl::string_view copied = {});
  absl::Status WaitUntilReady(absl::Time deadline);

  const ConnectionInfo* info_;
  std::unique_ptr<PGconn, Finish> handle_;
  std::string place_;  // "database D at HOST:PORT"
  bool usable_ = true;
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_

// PostgreSQL connections, their pool, and transactions: libpq with statuses.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <libpq-fe.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/store/sql_store.h"

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

  std::string search_path = "privatemail";  // of every session

 private:
  std::vector<std::pair<std::string, std::string>> options_;  // keyword and value
  std::vector<std::string> secrets_;
};

// The rows of a result, at the first one initially. Columns count from 0. NULL reads as 0 or
// empty.
class Result final : public SqlRow {
 public:
  explicit Result(PGresult* handle) : handle_(handle) {}

  // "COMMIT", "INSERT 0 3", ...
  absl::string_view command() const { return PQcmdStatus(handle_.get()); }
  bool HasRow() const { return row_ < PQntuples(handle_.get()); }
  void Next() { ++row_; }
  int64_t Int(int column) const override;  // smallint, integer or bigint
  double Double(int column) const override;
  // bytea or text; valid as long as the result.
  absl::string_view Bytes(int column) const override;

 private:
  struct Clear {
    void operator()(PGresult* handle) const { PQclear(handle); }
  };
  std::unique_ptr<PGresult, Clear> handle_;
  int row_ = 0;
};

using Clock = std::chrono::steady_clock;

// Maximum times of a statement and of a wait for a lock.
inline constexpr absl::Duration kStatementTimeout = absl::Minutes(2);
inline constexpr absl::Duration kLockTimeout = absl::Seconds(30);

// A session. Not thread-safe. Waits poll the CancellationScope of their thread. Errors name the
// database and repeat neither values nor passwords:
//   UNAVAILABLE          "the store is unavailable: ...": the server cannot be reached, is starting
//                        or stopping, has no connection left, or did not answer a statement within
//                        a second of its cancellation
//   CANCELLED            before a statement, also COMMIT, was sent: a write of a caller that
//                        is gone never overwrites its later ones
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
  absl::StatusOr<Result> Query(const std::string& sql, absl::Span<const SqlValue> values = {});

  // COPY ... FROM STDIN (FORMAT binary) of less than 1 GiB of rows.
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
  using Handle = std::unique_ptr<PGconn, Finish>;
  Connection(const ConnectionInfo& info, Handle handle);
  static absl::StatusOr<Handle> Connect(const ConnectionInfo& info);
  absl::Status Prepare();
  absl::Status Unavailable(absl::string_view reason) const;
  absl::Status ErrorOf(const PGresult* result) const;
  // Waits for the complete result of a command; `copied` is what a COPY takes. sent: 0 if libpq has
  // not sent the command. After that and after a timeout the session is unusable.
  absl::StatusOr<Result> Await(int sent, absl::string_view copied);
  absl::Status WaitUntilReady(Clock::time_point deadline);

  const ConnectionInfo* info_;
  Handle handle_;
  std::string place_;  // "database D at HOST:PORT"
  bool usable_ = true;
};

struct PoolOptions {
  int size = 8;                             // maximum of sessions; further calls wait
  absl::Duration wait = absl::Seconds(10);  // for a free session
};

// A bounded pool of connections. Must outlive its transactions. Thread-safe.
class Pool {
 public:
  Pool(ConnectionInfo info, PoolOptions options) : info_(std::move(info)), options_(options) {}

  const ConnectionInfo& info() const { return info_; }

 private:
  friend class Transaction;

  // An idle session or a new one, as `reused` says. UNAVAILABLE: all are busy for longer than the
  // wait. CANCELLED. Errors of Connection::Open.
  absl::StatusOr<std::unique_ptr<Connection>> Acquire(bool* reused);
  // Returns a session to the pool unless it is null or unusable.
  void Release(std::unique_ptr<Connection> connection);

  const ConnectionInfo info_;
  const PoolOptions options_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int in_use_ = 0;
};

// A transaction on a session of the pool. Errors of Connection.
class Transaction final : public SqlSession {
 public:
  // One that `writes` is read committed; another one reads from one moment (repeatable read).
  // Replaces sessions that the server has closed. UNAVAILABLE: no session within the pool's wait.
  static absl::StatusOr<std::unique_ptr<Transaction>> Begin(Pool* pool, bool writes);
  ~Transaction() override;

  using SqlSession::Query;
  absl::Status Query(const std::string& sql, absl::Span<const SqlValue> values,
                     Visitor visit) override;
  absl::StatusOr<Result> Copy(const std::string& sql, absl::string_view rows) {
    return connection_->Copy(sql, rows);
  }
  absl::Status Execute(const std::string& sql) { return connection_->Execute(sql); }

  // UNAVAILABLE: unknown.
  absl::Status Commit() override;

 private:
  Transaction(Pool* pool, std::unique_ptr<Connection> connection)
      : pool_(pool), connection_(std::move(connection)) {}

  Pool* const pool_;
  std::unique_ptr<Connection> connection_;
};

// Appends a number as the protocol has all of them: big-endian.
template <typename Unsigned>
void AppendBigEndian(Unsigned value, std::string* out) {
  for (int shift = 8 * (sizeof(Unsigned) - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(static_cast<unsigned char>(value >> shift)));
  }
}

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_CONNECTION_H_

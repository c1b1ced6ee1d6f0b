// A connection pool, and transactions.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_POOL_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_POOL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server::postgres {

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
  // wait. Errors of Connection::Open.
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

// A transaction on a session of the pool; rolled back on destruction unless committed. Not
// thread-safe. Errors of Connection.
class Transaction {
 public:
  enum class Kind {
    kWrite,  // read committed
    kRead,   // read only, of one moment (repeatable read)
  };

  // Replaces sessions that the server has closed. UNAVAILABLE: no session within the pool's wait.
  static absl::StatusOr<Transaction> Begin(Pool* pool, Kind kind);

  Transaction(Transaction&& other) noexcept
      : pool_(other.pool_), connection_(std::move(other.connection_)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::StatusOr<Result> Query(const std::string& sql, const Parameters& parameters = {}) {
    return connection_->Query(sql, parameters);
  }
  absl::StatusOr<Result> Copy(const std::string& sql, absl::string_view rows) {
    return connection_->Copy(sql, rows);
  }
  absl::Status Execute(const std::string& sql) { return connection_->Execute(sql); }

  // OK: the writes survive a crash of the server and its machine. UNAVAILABLE: unknown.
  absl::Status Commit();

 private:
  Transaction(Pool* pool, std::unique_ptr<Connection> connection)
      : pool_(pool), connection_(std::move(connection)) {}

  Pool* pool_;
  std::unique_ptr<Connection> connection_;  // null after a move
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_POOL_H_

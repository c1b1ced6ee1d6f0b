// A bounded number of sessions, and transactions on them.
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
  int size = 8;                             // sessions at most; more calls at once wait
  absl::Duration wait = absl::Seconds(10);  // for one of them
};

// Thread-safe. Must outlive its transactions.
class Pool {
 public:
  Pool(Target target, PoolOptions options) : target_(std::move(target)), options_(options) {}

  const Target& target() const { return target_; }

 private:
  friend class Transaction;

  // An idle session, or a new one; null the other is what `reused` says. UNAVAILABLE: all are
  // busy for longer than the wait; those of Connection::Open.
  absl::StatusOr<std::unique_ptr<Connection>> Acquire(bool* reused);
  // Keeps a session for the next call unless it is null or no longer usable.
  void Release(std::unique_ptr<Connection> connection);

  const Target target_;
  const PoolOptions options_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int in_use_ = 0;
};

// One transaction on a session of its own out of the pool; rolled back on destruction unless
// committed. One thread at a time. Errors as Connection.
class Transaction {
 public:
  enum class Kind {
    kWrite,  // read committed: each statement sees what others have committed before it
    kRead,   // read only, all of it at one moment (repeatable read)
  };

  // Sessions that the server has closed meanwhile, as when it was restarted, are replaced.
  // UNAVAILABLE: no session within the pool's wait.
  static absl::StatusOr<Transaction> Begin(Pool* pool, Kind kind);

  Transaction(Transaction&& other) noexcept
      : pool_(other.pool_), connection_(std::move(other.connection_)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::StatusOr<Result> Query(const std::string& sql, const Parameters& parameters = {}) {
    return connection_->Query(sql, parameters);
  }
  absl::Status Execute(const std::string& sql) { return connection_->Execute(sql); }

  // When it returns OK, what was written survives a crash of the server and of its machine. After
  // UNAVAILABLE nobody knows whether it was written.
  absl::Status Commit();

 private:
  Transaction(Pool* pool, std::unique_ptr<Connection> connection)
      : pool_(pool), connection_(std::move(connection)) {}

  Pool* pool_;
  std::unique_ptr<Connection> connection_;  // null once moved from
};

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_POOL_H_

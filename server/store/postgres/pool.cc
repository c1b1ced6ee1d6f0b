#include "server/store/postgres/pool.h"

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"

namespace privatemail::server::postgres {

absl::StatusOr<std::unique_ptr<Connection>> Pool::Acquire(bool* reused) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool free = released_.wait_for(lock, absl::ToChronoNanoseconds(options_.wait),
                                         [&] { return in_use_ < options_.size; });
    if (!free) {
      // UNAVAILABLE, like an exhausted server, and not RESOURCE_EXHAUSTED, which means no space.
      return OperatorOnlyError(absl::UnavailableError(
          absl::StrCat("all ", options_.size, " connections to the store were busy for ",
                       absl::FormatDuration(options_.wait), ": try again later")));
    }
    ++in_use_;
    *reused = !idle_.empty();
    if (*reused) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  absl::StatusOr<std::unique_ptr<Connection>> opened = Connection::Open(info_);
  if (!opened.ok()) Release(nullptr);
  return opened;
}

void Pool::Release(std::unique_ptr<Connection> connection) {
  const bool keep = connection != nullptr && connection->usable() && !connection->in_transaction();
  if (!keep) connection.reset();  // before the lock: it may take a moment
  const std::lock_guard<std::mutex> guard(mutex_);
  --in_use_;
  if (keep) idle_.push_back(std::move(connection));
  released_.notify_one();
}

absl::StatusOr<Transaction> Transaction::Begin(Pool* pool, Kind kind) {
  while (true) {
    bool reused = false;
    PM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, pool->Acquire(&reused));
    const absl::Status begun = connection->Execute(
        kind == Kind::kWrite ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    if (begun.ok()) return Transaction(pool, std::move(connection));
    pool->Release(std::move(connection));
    // Nothing was sent yet, so a session that died while idle can be replaced; each round removes
    // one of them from the pool.
    if (!reused || !absl::IsUnavailable(begun)) return begun;
  }
}

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  if (connection_->usable() && connection_->in_transaction()) {
    // If it fails, the pool closes the session, which rolls back too.
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  pool_->Release(std::move(connection_));
}

absl::Status Transaction::Commit() {
  PM_ASSIGN_OR_RETURN(const Result result, connection_->Query("COMMIT"));
  // For a failed transaction the server reports ROLLBACK as a success.
  if (result.command() == "COMMIT") return absl::OkStatus();
  return absl::InternalError("the transaction had failed before its commit and was rolled back");
}

}  // namespace privatemail::server::postgres

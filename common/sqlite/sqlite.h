// SQLite behind statuses: a connection, a prepared statement, a transaction. Knows nothing of
// collections. None of it is thread-safe: one thread at a time uses a connection and all that
// belongs to it.
#ifndef PRIVATEMAIL_COMMON_SQLITE_SQLITE_H_
#define PRIVATEMAIL_COMMON_SQLITE_SQLITE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::sqlite {

class Statement;

// One connection. Every failure is a status that names the file: DATA_LOSS when it is damaged or no
// database, RESOURCE_EXHAUSTED when the disk, the quota or the largest file that is allowed is full
// or a value is too big, FAILED_PRECONDITION when it cannot be opened or written, UNAVAILABLE when
// another program holds it for longer than the busy timeout, INTERNAL otherwise.
class Database {
 public:
  // Opens or creates the file. A database that is not readable shows at the first statement.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path);
  // One more connection to a file that is there, for reading: all at the moment of the first
  // statement, while others write.
  static absl::StatusOr<std::unique_ptr<Database>> OpenReadOnly(const std::string& path);

  // Runs SQL that returns nothing of interest.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // The single value of a query that returns one text or number.
  absl::StatusOr<std::string> Query(absl::string_view sql);

  // For a database that keeps a write-ahead log, before the first transaction: marks after each how
  // much of the log is synced (log_mark.h), and brings the log into the file now and then. While a
  // transaction runs no other connection may write.
  void EnableWalMark();
  // UNAVAILABLE: the file is no longer the one of its path. Commits look at it first: what they
  // write would be gone with the daemon.
  absl::Status CheckNotMoved() const;
  // Brings all of the log into the file, unless others still read from it, and empties it.
  absl::Status CheckpointLog();

  // The status for a result code other than OK, ROW and DONE; a OperatorOnlyError.
  absl::Status ErrorOf(int code) const;
  const std::string& path() const { return path_; }
  // Rows that the last statement changed.
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Database(std::string path) : path_(std::move(path)) {}
  static absl::StatusOr<std::unique_ptr<Database>> OpenWith(const std::string& path, int flags);
  absl::Status Explain(int code) const;
  // Brings pages of the log into the file; true when the file has all of them.
  absl::StatusOr<bool> Checkpoint(int mode);
  static int Committed(void* database, sqlite3* handle, const char* name, int frames);

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement. Parameters count from 1, columns from 0. What is bound must outlive the
// next Step or Run: it is not copied.
class Statement {
 public:
  Statement(const Database* database, sqlite3_stmt* handle)
      : database_(database), handle_(handle) {}

  Statement& Bind(int parameter, int64_t value);
  Statement& Bind(int parameter, double value);
  Statement& BindText(int parameter, absl::string_view value);
  Statement& BindBlob(int parameter, const void* bytes, size_t size);

  // True when a row is there to be read. After the last row, Reset before another round.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets.
  absl::Status Run();
  void Reset();

  // Of the current row; views live until the next Step or Reset.
  int64_t Int(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double Double(int column) const { return sqlite3_column_double(handle_.get(), column); }
  absl::string_view Bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  void Remember(int code) {
    if (bind_error_ == SQLITE_OK) bind_error_ = code;
  }

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bind_error_ = SQLITE_OK;  // the first since Reset, reported by Step
};

// A write transaction: rolled back on destruction unless committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database* database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // When it returns OK, what was written survives a crash of the program and of the machine.
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;  // null once committed or moved from
};

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_SQLITE_H_

// A C++ interface to SQLite with absl::Status: connections, prepared statements, transactions. Not
// thread-safe: one thread at a time uses a connection and its statements and transactions.
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

// A connection. Every failure is an OperatorOnlyError that names the file:
// - DATA_LOSS: damaged, or not a database
// - RESOURCE_EXHAUSTED: disk, quota or file size limit reached, or a value is too big
// - FAILED_PRECONDITION: cannot be opened or written, or it or its log is no regular file
// - UNAVAILABLE: locked by another program for longer than the busy timeout
// - INTERNAL: anything else
class Database {
 public:
  // Opens or creates the file. An unreadable database fails at the first statement.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path);
  // Opens an existing file for reading from one snapshot, taken at the first statement, while other
  // connections write.
  static absl::StatusOr<std::unique_ptr<Database>> OpenReadOnly(const std::string& path);
  // Opens an existing file for reading on a full disk: the index of its log is in memory instead of
  // in the file -shm, and nothing is written. No other connection can read or write during that
  // time.
  static absl::StatusOr<std::unique_ptr<Database>> OpenWithoutSpace(const std::string& path);

  // Runs SQL and ignores its rows.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // The single value of a query that returns one text or number; "" if it returns none.
  absl::StatusOr<std::string> Query(absl::string_view sql);

  // Records after each transaction how much of the log is synced (wal_mark.h) and checkpoints now
  // and then. Call before the first transaction of a database in WAL mode. While a transaction
  // runs, no other connection may write.
  void EnableWalMark();
  // UNAVAILABLE: the file was moved or removed. Commits check it, since their data would be lost
  // when the process ends.
  absl::Status CheckNotMoved() const;
  // Moves the whole log into the file and empties it, unless other connections still read it.
  absl::Status CheckpointLog();

  // The status for a result code other than OK, ROW and DONE; an OperatorOnlyError.
  absl::Status ErrorOf(int code) const;
  const std::string& path() const { return path_; }
  // Rows that the last statement changed.
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Database(std::string path) : path_(std::move(path)) {}
  absl::Status CheckFiles() const;
  static absl::StatusOr<std::unique_ptr<Database>> OpenWith(const std::string& path, int flags);
  // Moves pages of the log into the file; true if all were moved.
  absl::StatusOr<bool> Checkpoint(int mode);
  static int OnCommit(void* database, sqlite3* handle, const char* name, int frames);

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement. Parameters count from 1, columns from 0. Bound values are not copied and
// must outlive the next Step or Run.
class Statement {
 public:
  Statement(const Database* database, sqlite3_stmt* handle)
      : database_(database), handle_(handle) {}

  Statement& Bind(int parameter, int64_t value);
  Statement& Bind(int parameter, double value);
  Statement& BindText(int parameter, absl::string_view value);
  Statement& BindBlob(int parameter, const void* bytes, size_t size);

  // Whether there is a row to read. Reset after the last row to run again.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets.
  absl::Status Run();
  void Reset();

  // Columns of the current row; views are valid until the next Step or Reset.
  int64_t Int(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  double Double(int column) const { return sqlite3_column_double(handle_.get(), column); }
  absl::string_view Bytes(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  void RecordBindError(int code) {
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

  // After OK, the changes survive a crash of the program and of the machine.
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;  // null once committed or moved from
};

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_SQLITE_H_

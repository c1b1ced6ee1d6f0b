#include "common/sqlite/sqlite.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/sqlite/checksum_vfs.h"
#include "common/sqlite/checksums.h"
#include "common/sqlite/wal_mark.h"

namespace privatemail::sqlite {

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  return OpenWith(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenReadOnly(const std::string& path) {
  PM_ASSIGN_OR_RETURN(auto database, OpenWith(path, SQLITE_OPEN_READWRITE));
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA query_only = 1; BEGIN"));
  return database;
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenWithoutSpace(const std::string& path) {
  PM_ASSIGN_OR_RETURN(auto database, OpenWith(path, SQLITE_OPEN_READWRITE));
  // The mark still covers the log, which must stay.
  sqlite3_db_config(database->handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = 1"));
  return database;
}

// SQLite would wait for a program that opens the other end of a named pipe.
absl::Status Database::CheckFiles() const {
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    const std::string file = absl::StrCat(path_, suffix);
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode)) continue;
    return OperatorOnlyError(absl::FailedPreconditionError(
        absl::StrCat("database file ", file,
                     " must be a regular file or absent, but is another kind: remove it")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenWith(const std::string& path, int flags) {
  auto database = std::unique_ptr<Database>(new Database(path));
  PM_RETURN_IF_ERROR(database->CheckFiles());
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                      ChecksumVfsName());
  database->handle_.reset(handle);  // owned even if opening failed
  if (code != SQLITE_OK) return database->ErrorOf(code);
  int reserved = kPageChecksumBytes;         // applies to new files only
  constexpr int kBusyMilliseconds = 10'000;  // others lock it only briefly
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  sqlite3_file_control(handle, nullptr, SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  return database;
}

absl::Status Database::ErrorOf(int code) const {
  using Code = absl::StatusCode;
  const char* reason = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const std::string file = absl::StrCat("database file ", path_);
  const auto error = [](Code kind, const auto&... parts) {
    return OperatorOnlyError(absl::Status(kind, absl::StrCat(parts...)));
  };
  if (code == SQLITE_IOERR_DATA) {
    return error(Code::kDataLoss, file,
                 " or its log is damaged (a page does not match its checksum): restore it from a "
                 "backup");
  }
  switch (code & 0xff) {  // the low byte of an extended code is the class
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return error(Code::kDataLoss, file, " is damaged (", reason, "): restore it from a backup");
    case SQLITE_FULL:  // also for quotas and file size limits, see ChecksumVfsName
      return error(Code::kResourceExhausted, "no space left for ", file, " (", reason, ")");
    case SQLITE_TOOBIG:
      return error(Code::kResourceExhausted, "a value is too big for ", file, " (", reason, ")");
    case SQLITE_BUSY:
      return error(Code::kUnavailable, file, " is in use by another program (", reason, ")");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return error(Code::kFailedPrecondition, "cannot open ", file, " for writing (", reason, ")");
    default:
      return error(Code::kInternal, file, ": ", reason, " (code ", code, ")");
  }
}

void Database::EnableWalMark() {
  sqlite3_wal_hook(handle_.get(), OnCommit, this);
  UseLogFlag(handle_.get());
  // The last connection must not remove a log that the mark still covers.
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

absl::Status Database::CheckNotMoved() const {
  int moved = 0;
  const int code = sqlite3_file_control(handle_.get(), nullptr, SQLITE_FCNTL_HAS_MOVED, &moved);
  if (code != SQLITE_OK) return ErrorOf(code);
  if (moved == 0) return absl::OkStatus();
  return OperatorOnlyError(absl::UnavailableError(
      absl::StrCat("database file ", path_,
                   " was moved, removed or replaced while it was open: nothing is stored any more; "
                   "put it back, or restart")));
}

int Database::OnCommit(void* database, sqlite3* /*handle*/, const char* /*name*/, int frames) {
  constexpr int kMaxWalFrames = 1000;
  auto* self = static_cast<Database*>(database);
  SetWalMark(self->path_, frames);
  if (frames < kMaxWalFrames) return SQLITE_OK;
  // Once the whole log is in the file, the next transaction restarts it: clear its mark before
  // that. A failure here is reported when the pages are read.
  const absl::StatusOr<bool> complete = self->Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  return !complete.ok() || !*complete || ClearWalMark(self->path_).ok() ? SQLITE_OK : SQLITE_IOERR;
}

absl::StatusOr<bool> Database::Checkpoint(int mode) {
  int frames = 0;
  int done = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, mode, &frames, &done);
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return false;
  if (code != SQLITE_OK) return ErrorOf(code);
  return frames == done;
}

absl::Status Database::CheckpointLog() {
  PM_ASSIGN_OR_RETURN(const bool complete, Checkpoint(SQLITE_CHECKPOINT_FULL));
  if (!complete) return absl::OkStatus();
  PM_RETURN_IF_ERROR(ClearWalMark(path_));
  if (const int code = ClearLogFlag(handle_.get()); code != SQLITE_OK) return ErrorOf(code);
  return Checkpoint(SQLITE_CHECKPOINT_TRUNCATE).status();
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorOf(code);
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
  if (code != SQLITE_OK) return ErrorOf(code);
  return Statement(this, handle);
}

absl::StatusOr<std::string> Database::Query(absl::string_view sql) {
  PM_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  PM_ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? std::string(statement.Bytes(0)) : std::string();
}

Statement& Statement::Bind(int parameter, int64_t value) {
  RecordBindError(sqlite3_bind_int64(handle_.get(), parameter, value));
  return *this;
}

Statement& Statement::Bind(int parameter, double value) {
  RecordBindError(sqlite3_bind_double(handle_.get(), parameter, value));
  return *this;
}

Statement& Statement::BindText(int parameter, absl::string_view value) {
  // An empty view may hold a null pointer, which would bind NULL.
  const char* text = value.empty() ? "" : value.data();
  RecordBindError(sqlite3_bind_text64(handle_.get(), parameter, text, value.size(), SQLITE_STATIC,
                                      SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBlob(int parameter, const void* bytes, size_t size) {
  RecordBindError(
      sqlite3_bind_blob64(handle_.get(), parameter, size == 0 ? "" : bytes, size, SQLITE_STATIC));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) return database_->ErrorOf(bind_error_);
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->ErrorOf(code);
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = Step();
  Reset();
  return more.status();
}

void Statement::Reset() {
  // Its result repeats the code that Step reported.
  sqlite3_reset(handle_.get());
  bind_error_ = SQLITE_OK;
}

absl::string_view Statement::Bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

absl::StatusOr<Transaction> Transaction::Begin(Database* database) {
  PM_RETURN_IF_ERROR(database->Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Fails only if SQLite has already rolled back.
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  PM_RETURN_IF_ERROR(database_->CheckNotMoved());
  PM_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace privatemail::sqlite

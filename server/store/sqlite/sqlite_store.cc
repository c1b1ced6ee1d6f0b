#include "server/store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/cancellation.h"
#include "common/base/descriptor.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/sqlite/wal_mark.h"
#include "server/store/decode.h"
#include "server/store/directory_lock.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

// Versions are counted from 1; a file without tables has version 0.
//
// - Blobs: as in decode.h.
// - AUTOINCREMENT: keys are never reused, so no row passes from a deleted collection to a new one.
// - items.inserted, items.version: the versions of an item's insertion and of its last change.
// - deletions: tombstones until an embedding without the items is saved.
// - cells: of an embedding, whose key they name. Their keys are from the same sequence.
// - cells.quality: empty until it is measured.
constexpr int64_t kSchemaVersion = 1;
constexpr char kSchema[] = R"sql(
  CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    parameters BLOB NOT NULL,
    anchor_features BLOB NOT NULL,
    anchor_labels BLOB NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    latest_version INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE items (
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    features BLOB NOT NULL,
    payload TEXT NOT NULL,
    inserted INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (collection, id)
  ) STRICT;
  CREATE INDEX items_by_version ON items (collection, version);
  CREATE TABLE deletions (
    collection INTEGER NOT NULL,
    version INTEGER NOT NULL,
    inserted INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (collection, version)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE embedding_keys (last INTEGER NOT NULL) STRICT;
  INSERT INTO embedding_keys (last) VALUES (0);
  CREATE TABLE embeddings (
    collection INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    version INTEGER NOT NULL,
    items_version INTEGER NOT NULL,
    objective REAL NOT NULL,
    anchor_coordinates BLOB NOT NULL
  ) STRICT;
  CREATE TABLE embedded_items (
    embedding INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    coordinates BLOB NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (embedding, position)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE cells (
    collection INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    embedding INTEGER NOT NULL,
    quality BLOB NOT NULL
  ) STRICT;
  CREATE TABLE cell_parts (
    cells INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (cells, part)
  ) STRICT;
)sql";

// FAILED_PRECONDITION: the file has another version.
absl::Status CheckSchema(Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string version, database->Query("PRAGMA user_version"));
  if (version == absl::StrCat(kSchemaVersion)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("database file ", database->path(), " has schema version ", version,
                   ", this program knows version ", kSchemaVersion));
}

// Configures durable writes, and creates the tables in one transaction unless they are there.
absl::Status PrepareSchema(Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string version, database->Query("PRAGMA user_version"));
  const bool is_new = version == "0";
  if (!is_new) PM_RETURN_IF_ERROR(CheckSchema(database));
  PM_ASSIGN_OR_RETURN(const std::string mode, database->Query("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("database file ", database->path(),
                     " cannot keep a write-ahead log here, its journal mode stays '", mode, "'"));
  }
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = FULL"));
  if (!is_new) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  PM_RETURN_IF_ERROR(
      database->Execute(absl::StrCat(kSchema, "PRAGMA user_version = ", kSchemaVersion)));
  return transaction.Commit();
}

absl::Status CannotMake(const std::string& path) {
  return OperatorOnlyError(
      absl::ErrnoToStatus(errno, absl::StrCat("database file ", path, " cannot be created")));
}

// A new file gets its name after its tables, so an empty file is a damaged one.
absl::Status MakeFile(const std::string& directory, const std::string& path) {
  const std::string draft = path + ".new";
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((draft + suffix).c_str());
  {
    PM_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, Database::Open(draft));
    PM_RETURN_IF_ERROR(PrepareSchema(database.get()));
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return CannotMake(path);
  const Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool durable = folder.get() >= 0 && ::fsync(folder.get()) == 0;
  return durable ? absl::OkStatus() : CannotMake(path);
}

absl::StatusOr<std::unique_ptr<Database>> OpenForWriting(const std::string& path) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path));
  database->EnableWalMark();
  PM_RETURN_IF_ERROR(PrepareSchema(database.get()));
  PM_RETURN_IF_ERROR(database->CheckpointLog());
  return database;
}

absl::StatusOr<std::unique_ptr<Database>> OpenForReading(const std::string& path) {
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::OpenWithoutSpace(path));
  PM_RETURN_IF_ERROR(CheckSchema(database.get()));
  return database;
}

constexpr int kRowsAtOnce = 1000;

constexpr LargeTable kTables[] = {kItems, kDeletions, kEmbeddedItems, kCellParts};

class CurrentRow final : public SqlRow {
 public:
  explicit CurrentRow(const Statement& statement) : statement_(statement) {}
  int64_t Int(int column) const override { return statement_.Int(column); }
  double Double(int column) const override { return statement_.Double(column); }
  absl::string_view Bytes(int column) const override { return statement_.Bytes(column); }

 private:
  const Statement& statement_;
};

// Binds a value, or row `row` of an array.
void Bind(const SqlValue& value, size_t row, int parameter, Statement* statement) {
  struct Binder {
    void operator()(int64_t number) const { statement->Bind(parameter, number); }
    void operator()(double number) const { statement->Bind(parameter, number); }
    void operator()(SqlText text) const { statement->BindText(parameter, text.value); }
    void operator()(SqlUtf8 text) const { statement->BindText(parameter, text.value); }
    void operator()(SqlBytes bytes) const {
      statement->BindBlob(parameter, bytes.value.data(), bytes.value.size());
    }
    void operator()(SqlInts numbers) const { (*this)(numbers[row]); }
    void operator()(SqlUtf8s texts) const { (*this)(SqlUtf8{texts.values[row]}); }
    void operator()(SqlByteses bytes) const { (*this)(SqlBytes{bytes.values[row]}); }
    size_t row;
    int parameter;
    Statement* statement;
  };
  std::visit(Binder{row, parameter, statement}, value);
}

size_t RowsOf(const SqlValue& array) {
  if (const auto* numbers = std::get_if<SqlInts>(&array)) return numbers->size();
  return std::get<SqlUtf8s>(array).values.size();
}

// Holds the store's lock while it writes, and while it reads from a store that is read-only.
class SqliteSession final : public SqlSession {
 public:
  SqliteSession(std::unique_lock<std::mutex> lock, std::unique_ptr<Database> own,
                Database* database, std::optional<Transaction> transaction)
      : lock_(std::move(lock)),
        own_(std::move(own)),
        database_(database),
        transaction_(std::move(transaction)) {}

  using SqlSession::Query;
  absl::Status Query(const std::string& sql, absl::Span<const SqlValue> values,
                     Visitor visit) override {
    PM_ASSIGN_OR_RETURN(Statement* const statement, Prepare(sql));
    for (size_t i = 0; i < values.size(); ++i) {
      Bind(values[i], 0, static_cast<int>(i) + 1, statement);
    }
    return Visit(statement, visit);
  }

  // Prepared once. An open statement would block the commit: Visit resets it.
  absl::StatusOr<Statement*> Prepare(const std::string& sql) {
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
      PM_ASSIGN_OR_RETURN(Statement statement,
                          database_->Prepare(absl::StrReplaceAll(sql, {{"$", "?"}})));
      found = statements_.emplace(sql, std::move(statement)).first;
    }
    return &found->second;
  }

  static absl::Status Visit(Statement* statement, Visitor visit) {
    absl::Status status;
    while (status.ok()) {
      const absl::StatusOr<bool> more = statement->Step();
      status = more.status();
      if (status.ok() && !*more) break;
      if (status.ok()) status = visit(CurrentRow(*statement));
    }
    statement->Reset();
    return status;
  }

  // Not for a caller that is gone, whose later writes through another call must not be overwritten.
  absl::Status Commit() override {
    PM_RETURN_IF_ERROR(CheckThreadNotCancelled());
    return transaction_->Commit();
  }
  int64_t changes() const { return database_->changes(); }

 private:
  std::unique_lock<std::mutex> lock_;
  const std::unique_ptr<Database> own_;  // null: the store's
  Database* const database_;
  std::optional<Transaction> transaction_;  // of a session that writes
  std::map<std::string, Statement> statements_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& directory) {
  PM_ASSIGN_OR_RETURN(Descriptor lock, LockDirectory(directory));
  const std::string path = absl::StrCat(directory, "/privatemail.sqlite");
  struct stat file = {};
  const bool exists = ::lstat(path.c_str(), &file) == 0;
  if (exists && S_ISLNK(file.st_mode)) {
    return OperatorOnlyError(absl::FailedPreconditionError(
        absl::StrCat("database file ", path,
                     " is a symbolic link, but its log must lie beside it: "
                     "make the whole data folder a link")));
  }
  for (const char* const beside : {"-wal", "-mark"}) {
    if (exists || ::access((path + beside).c_str(), F_OK) != 0) continue;
    return OperatorOnlyError(absl::DataLossError(
        absl::StrCat("database file ", path, " is not there, but ", path, beside,
                     " is: put the database back, or move what belongs to it away as well")));
  }
  if (exists && file.st_size == 0) {
    return absl::DataLossError(absl::StrCat("database file ", path,
                                            " is damaged (it is empty): restore it from a backup"));
  }
  if (!exists) PM_RETURN_IF_ERROR(MakeFile(directory, path));
  PM_RETURN_IF_ERROR(sqlite::CheckWal(path));
  absl::StatusOr<std::unique_ptr<Database>> database = OpenForWriting(path);
  const absl::Status writable = database.status();
  if (absl::IsResourceExhausted(writable)) database = OpenForReading(path);
  PM_RETURN_IF_ERROR(database.status());
  auto store = std::unique_ptr<SqliteStore>(new SqliteStore(std::move(lock), *std::move(database)));
  store->SetWritable(writable);
  if (store->read_only()) return store;
  PM_RETURN_IF_ERROR(store->PastDamage([&] { return store->FindOrphanRows(); }));
  return store;
}

SqliteStore::SqliteStore(Descriptor lock, std::unique_ptr<Database> database)
    : lock_(std::move(lock)), path_(database->path()), database_(std::move(database)) {}

// After a failure the next start recovers from the log.
SqliteStore::~SqliteStore() {
  if (!read_only_) database_->CheckpointLog().IgnoreError();
}

void SqliteStore::SetWritable(const absl::Status& writable) {
  read_only_reason_ = writable;
  read_only_ = !writable.ok();
}

absl::Status SqliteStore::TryWritable() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!read_only_) return absl::OkStatus();
  // Opened before, so that reading goes on when no file can be opened.
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Database> reading, Database::OpenWithoutSpace(path_));
  database_.reset();  // it excludes others
  absl::StatusOr<std::unique_ptr<Database>> writing = OpenForWriting(path_);
  SetWritable(writing.status());
  // The next start removes orphan rows: imports may run from now on.
  database_ = writing.ok() ? *std::move(writing) : std::move(reading);
  return read_only_reason_;
}

absl::Status SqliteStore::Damaged(absl::string_view what) const {
  return OperatorOnlyError(absl::DataLossError(
      absl::StrCat("database file ", path_, " is damaged (", what, "): restore it from a backup")));
}

absl::StatusOr<std::unique_ptr<SqlSession>> SqliteStore::Begin(bool writes) {
  std::unique_lock<std::mutex> lock(mutex_);
  PM_RETURN_IF_ERROR(CheckThreadNotCancelled());  // the wait may have been long
  if (writes && read_only_) {
    return OperatorOnlyError(absl::Status(
        read_only_reason_.code(), absl::StrCat("the store is read-only until there is space: ",
                                               read_only_reason_.message())));
  }
  std::unique_ptr<Database> own;
  std::optional<Transaction> transaction;
  Database* database = database_.get();
  if (writes) {
    PM_ASSIGN_OR_RETURN(Transaction begun, Transaction::Begin(database));
    transaction.emplace(std::move(begun));
  } else if (!read_only_) {
    PM_RETURN_IF_ERROR(database_->CheckNotMoved());  // what is at its path now is another file
    lock.unlock();
    PM_ASSIGN_OR_RETURN(own, Database::OpenReadOnly(path_));
    database = own.get();
  }
  return std::make_unique<SqliteSession>(std::move(lock), std::move(own), database,
                                         std::move(transaction));
}

absl::Status SqliteStore::QueryByIds(SqlSession* session, absl::string_view sql,
                                     absl::string_view suffix, int64_t key,
                                     absl::Span<const std::string> ids, SqlSession::Visitor visit) {
  PM_ASSIGN_OR_RETURN(Statement* const statement, static_cast<SqliteSession*>(session)->Prepare(
                                                      absl::StrCat(sql, " = $2", suffix)));
  for (const std::string& id : ids) {
    statement->Bind(1, key).BindText(2, id);
    PM_RETURN_IF_ERROR(SqliteSession::Visit(statement, visit));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::InsertRows(SqlSession* session, absl::string_view table, int64_t key,
                                     absl::string_view columns, absl::Span<const SqlValue> values,
                                     absl::string_view suffix) {
  std::string sql = absl::StrCat("INSERT INTO ", table, " (collection, ", columns, ") VALUES ($1");
  for (size_t i = 0; i < values.size(); ++i) absl::StrAppend(&sql, ", $", i + 2);
  PM_ASSIGN_OR_RETURN(Statement* const statement, static_cast<SqliteSession*>(session)->Prepare(
                                                      absl::StrCat(sql, ")", suffix)));
  for (size_t row = 0; row < RowsOf(values.front()); ++row) {
    statement->Bind(1, key);
    for (size_t i = 0; i < values.size(); ++i) {
      Bind(values[i], row, static_cast<int>(i) + 2, statement);
    }
    PM_RETURN_IF_ERROR(statement->Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::NewKey(SqlSession* session) {
  return session->QueryInt("UPDATE embedding_keys SET last = last + 1 RETURNING last", {});
}

absl::Status SqliteStore::WriteEmbeddedItems(SqlSession* session, int64_t key,
                                             const Embedding& embedding) {
  const std::string sql =
      "INSERT INTO embedded_items (embedding, position, id, label, coordinates, payload) "
      "VALUES ($1, $2, $3, $4, $5, $6)";
  for (size_t i = 0; i < embedding.ids.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    PM_RETURN_IF_ERROR(session->Run(
        sql,
        {key, int64_t{row}, SqlUtf8{embedding.ids[i]}, int64_t{embedding.labels[i]},
         SqlBytes{BytesOf(embedding.coordinates.row(row).data(), embedding.coordinates.cols())},
         SqlUtf8{embedding.payloads[i]}}));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::ImportParts(const StoredCollection& collection, GallerySource source) {
  int64_t key = 0;
  {
    PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
    PM_ASSIGN_OR_RETURN(key, InsertCollection(session.get(), collection, 0, 0));
    PM_RETURN_IF_ERROR(session->Run("DELETE FROM collections WHERE key = $1", {key}));
    PM_RETURN_IF_ERROR(session->Commit());
  }
  const absl::Status imported = ImportInto(key, collection, source);
  if (!imported.ok()) AddRemoval(kItems, key);
  return imported;
}

absl::Status SqliteStore::ImportInto(int64_t key, const StoredCollection& collection,
                                     GallerySource source) {
  uint64_t version = collection.latest_version;
  PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
    PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
    PM_RETURN_IF_ERROR(InsertItems(session.get(), key, part, version));
    version += part.ids.size();
    return session->Commit();
  }));
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  PM_ASSIGN_OR_RETURN(const int64_t made,
                      InsertCollection(session.get(), collection, collection.items, version));
  PM_RETURN_IF_ERROR(session->Run("UPDATE collections SET key = $1 WHERE key = $2", {key, made}));
  return session->Commit();
}

absl::Status StatusOf(const absl::Status& status) { return status; }
template <typename Value>
absl::Status StatusOf(const absl::StatusOr<Value>& result) {
  return result.status();
}

template <typename Write>
auto SqliteStore::PastDamage(Write write) -> decltype(write()) {
  auto outcome = write();
  for (const LargeTable& table : {kCellParts, kEmbeddedItems}) {
    if (!absl::IsDataLoss(StatusOf(outcome))) break;
    if (IsDamaged(table) && SetAside(table).ok()) outcome = write();
  }
  return outcome;
}

bool SqliteStore::IsDamaged(const LargeTable& table) {
  for (const char* const name : {table.parent, table.name}) {
    const absl::StatusOr<std::unique_ptr<SqlSession>> session = Begin(/*writes=*/false);
    if (!session.ok()) return false;
    bool is_sound = true;
    const absl::Status read =
        (*session)->Query(absl::StrCat("PRAGMA quick_check(", name, ")"), {},
                          [&](const SqlRow& row) { is_sound &= row.Bytes(0) == "ok"; });
    if (absl::IsDataLoss(read) || !is_sound) return true;
  }
  return false;
}

absl::Status SqliteStore::SetAside(const LargeTable& table) {
  std::string prefix;
  {
    PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
    PM_ASSIGN_OR_RETURN(const int64_t objects,
                        session->QueryInt("SELECT count(*) FROM sqlite_schema", {}));
    prefix = absl::StrCat("damaged_", objects, "_");
    for (const std::string name : {table.parent, table.name}) {
      std::string definition;
      PM_RETURN_IF_ERROR(session->Query("SELECT sql FROM sqlite_schema WHERE name = $1",
                                        {SqlText{name}},
                                        [&](const SqlRow& row) { definition = row.Text(0); }));
      PM_RETURN_IF_ERROR(
          session->Run(absl::StrCat("ALTER TABLE ", name, " RENAME TO ", prefix, name), {}));
      PM_RETURN_IF_ERROR(session->Run(definition, {}));
    }
    PM_RETURN_IF_ERROR(session->Commit());
  }
  std::vector<int64_t> keys;
  {
    PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/false));
    // Reading ends at a damaged page.
    session
        ->Query(absl::StrCat("SELECT key FROM ", prefix, table.parent), {},
                [&](const SqlRow& row) { keys.push_back(row.Int(0)); })
        .IgnoreError();
  }
  const auto copy = [&](int64_t key) -> absl::Status {
    PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
    for (const auto& [name, column] :
         {std::pair<std::string, std::string>{table.parent, "key"}, {table.name, table.key}}) {
      PM_RETURN_IF_ERROR(session->Run(absl::StrCat("INSERT INTO ", name, " SELECT * FROM ", prefix,
                                                   name, " WHERE ", column, " = $1"),
                                      {key}));
    }
    return session->Commit();
  };
  for (const int64_t key : keys) copy(key).IgnoreError();  // what cannot be read is made again
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SqliteStore::SaveEmbedding(const PublicParameters& parameters,
                                                    const Embedding& embedding) {
  return PastDamage([&] { return SqlStore::SaveEmbedding(parameters, embedding); });
}

absl::Status SqliteStore::SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                                    absl::string_view image) {
  return PastDamage([&] { return SqlStore::SaveCells(parameters, of, image); });
}

absl::Status SqliteStore::SaveQuality(const PublicParameters& parameters,
                                      const EmbeddingVersion& of, const CellQuality& quality) {
  return PastDamage([&] { return SqlStore::SaveQuality(parameters, of, quality); });
}

absl::StatusOr<uint64_t> SqliteStore::Delete(absl::string_view uuid) {
  return PastDamage([&] { return DeleteOnce(uuid); });
}

absl::StatusOr<uint64_t> SqliteStore::DeleteOnce(absl::string_view uuid) {
  uint64_t items = 0;
  int64_t keys[std::size(kTables)];  // of the rows of each table
  {
    PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(uuid, Lock::kDelete));
    const auto& [session, collection] = begun;
    items = static_cast<uint64_t>(collection.items);
    keys[0] = keys[1] = collection.key;
    for (size_t i = 2; i < std::size(kTables); ++i) {
      PM_ASSIGN_OR_RETURN(keys[i], session->QueryInt(absl::StrCat("DELETE FROM ", kTables[i].parent,
                                                                  " WHERE collection = $1 "
                                                                  "RETURNING key"),
                                                     {collection.key}));
    }
    PM_RETURN_IF_ERROR(session->Run("DELETE FROM collections WHERE key = $1", {collection.key}));
    PM_RETURN_IF_ERROR(session->Commit());
  }
  for (size_t i = 0; i < std::size(kTables); ++i) AddRemoval(kTables[i], keys[i]);
  return items;
}

void SqliteStore::AddRemoval(const LargeTable& table, int64_t key) {
  const std::lock_guard<std::mutex> guard(removals_mutex_);
  removals_.emplace_back(&table, key);
}

absl::StatusOr<bool> SqliteStore::RemoveSomeRows() {
  std::pair<const LargeTable*, int64_t> next;
  {
    const std::lock_guard<std::mutex> guard(removals_mutex_);
    if (removals_.empty()) return false;
    next = removals_.front();
  }
  PM_ASSIGN_OR_RETURN(const bool more,
                      PastDamage([&] { return RemoveRows(*next.first, next.second); }));
  const std::lock_guard<std::mutex> guard(removals_mutex_);
  if (!more && !removals_.empty() && removals_.front() == next) removals_.pop_front();
  return !removals_.empty();
}

absl::StatusOr<bool> SqliteStore::RemoveRows(const LargeTable& table, int64_t key) {
  // The indexed column of items follows the order of insertion, so that whole pages become free.
  const std::string sql = absl::StrCat(
      "DELETE FROM ", table.name, " WHERE ", table.key, " = $1 AND ", table.order, " IN (SELECT ",
      table.order, " FROM ", table.name, " WHERE ", table.key, " = $1 LIMIT ", kRowsAtOnce, ")");
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  PM_RETURN_IF_ERROR(session->Run(sql, {key}));
  const int64_t removed = static_cast<SqliteSession&>(*session).changes();
  PM_RETURN_IF_ERROR(session->Commit());
  return removed == kRowsAtOnce;
}

absl::Status SqliteStore::FindOrphanRows() {
  for (const LargeTable& table : kTables) {
    const std::string next =
        absl::StrCat("SELECT min(", table.key, "), min(", table.key, ") IN (SELECT key FROM ",
                     table.parent, ") FROM ", table.name, " WHERE ", table.key, " > $1");
    for (int64_t key = 0;;) {
      bool is_orphan = false;
      {
        PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/false));
        PM_RETURN_IF_ERROR(session->Query(next, {key}, [&](const SqlRow& row) {
          key = row.Int(0);
          is_orphan = row.Int(1) == 0;
        }));
      }
      if (key == 0) break;  // null: no further row
      if (is_orphan) AddRemoval(table, key);
    }
  }
  return absl::OkStatus();
}

}  // namespace privatemail::server

#include "server/store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "common/sqlite/wal_mark.h"
#include "server/store/decode.h"
#include "server/store/sqlite/item_writer.h"
#include "server/store/sqlite/rows.h"
#include "server/store/sqlite/schema.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

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
  const int folder = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool durable = folder >= 0 && ::fsync(folder) == 0;
  const absl::Status status = durable ? absl::OkStatus() : CannotMake(path);
  if (folder >= 0) ::close(folder);
  return status;
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

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& directory) {
  PM_ASSIGN_OR_RETURN(DirectoryLock lock, DirectoryLock::Acquire(directory));
  const std::string path = absl::StrCat(directory, "/privatemail.sqlite");
  struct stat file = {};
  const bool exists = ::stat(path.c_str(), &file) == 0;
  if (exists && file.st_size == 0) {
    return absl::DataLossError(absl::StrCat("database file ", path,
                                            " is damaged (it is empty): restore it from a backup"));
  }
  if (!exists) PM_RETURN_IF_ERROR(MakeFile(directory, path));
  PM_RETURN_IF_ERROR(sqlite::WalMark(path).Check());
  absl::StatusOr<std::unique_ptr<Database>> database = OpenForWriting(path);
  const absl::Status writable = database.status();
  if (absl::IsResourceExhausted(writable)) database = OpenForReading(path);
  PM_RETURN_IF_ERROR(database.status());
  auto store = std::unique_ptr<SqliteStore>(new SqliteStore(std::move(lock), *std::move(database)));
  store->SetWritable(writable);
  if (store->read_only()) return store;
  // Orphan rows are invisible, so a full disk does not prevent the start.
  const absl::Status removed = store->RemoveOrphanRows();
  if (!removed.ok() && !absl::IsResourceExhausted(removed)) return removed;
  return store;
}

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
  const std::string path = database_->path();
  // Opened before, so that reading goes on when no file can be opened.
  PM_ASSIGN_OR_RETURN(std::unique_ptr<Database> reading, Database::OpenWithoutSpace(path));
  database_.reset();  // it excludes others
  absl::StatusOr<std::unique_ptr<Database>> writing = OpenForWriting(path);
  SetWritable(writing.status());
  // The next start removes orphan rows: imports may run from now on.
  database_ = writing.ok() ? *std::move(writing) : std::move(reading);
  return read_only_reason_;
}

absl::StatusOr<Transaction> SqliteStore::BeginWrite() {
  if (!read_only_) return Transaction::Begin(database_.get());
  return OperatorOnlyError(absl::Status(
      read_only_reason_.code(),
      absl::StrCat("the store is read-only until there is space: ", read_only_reason_.message())));
}

absl::StatusOr<int64_t> SqliteStore::KeyOf(absl::string_view uuid) {
  return KeyOf(database_.get(), uuid);
}

absl::StatusOr<int64_t> SqliteStore::KeyOf(Database* database, absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(Statement select,
                      database->Prepare("SELECT key FROM collections WHERE uuid = ?1"));
  PM_ASSIGN_OR_RETURN(const bool found, select.BindText(1, uuid).Step());
  if (!found) return NoSuchCollection(uuid);
  return select.Int(0);
}

absl::StatusOr<EmbeddingVersion> SqliteStore::VersionOf(Database* database, int64_t key) {
  PM_ASSIGN_OR_RETURN(
      Statement select,
      database->Prepare("SELECT version, items_version FROM embeddings WHERE collection = ?1"));
  PM_ASSIGN_OR_RETURN(const bool found, select.Bind(1, key).Step());
  if (!found) return EmbeddingVersion{};
  return EmbeddingVersion{select.Int(0), select.Int(1)};
}

absl::StatusOr<std::vector<StoredCollection>> SqliteStore::LoadCollections() {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Statement select,
                      database_->Prepare(absl::StrCat("SELECT ", kCollectionColumns,
                                                      " FROM collections ORDER BY name")));
  std::vector<StoredCollection> collections;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return collections;
    PM_ASSIGN_OR_RETURN(collections.emplace_back(), ReadCollection(*database_, select));
  }
}

absl::StatusOr<StoredCollection> SqliteStore::LoadCollection(absl::string_view uuid) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(uuid));
  PM_ASSIGN_OR_RETURN(Statement select,
                      database_->Prepare(absl::StrCat("SELECT ", kCollectionColumns,
                                                      " FROM collections WHERE key = ?1")));
  PM_RETURN_IF_ERROR(select.Bind(1, key).Step().status());
  return ReadCollection(*database_, select);
}

absl::StatusOr<std::vector<CollectionState>> SqliteStore::ListStates() {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(
      Statement select,
      database_->Prepare("SELECT c.uuid, c.name, c.key, c.items, c.latest_version, "
                         "coalesce(e.version, 0) FROM collections c LEFT JOIN embeddings e "
                         "ON e.collection = c.key ORDER BY c.name"));
  std::vector<CollectionState> states;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return states;
    states.push_back({std::string(select.Bytes(0)), std::string(select.Bytes(1)), select.Int(2),
                      static_cast<uint64_t>(select.Int(3)), static_cast<uint64_t>(select.Int(4)),
                      static_cast<uint64_t>(select.Int(5))});
  }
}

absl::StatusOr<SqliteStore::Reader> SqliteStore::BeginRead() {
  Reader reader;
  reader.lock_ = std::unique_lock<std::mutex>(mutex_);
  reader.database_ = database_.get();
  if (read_only_) return reader;
  PM_RETURN_IF_ERROR(database_->CheckNotMoved());  // what is at its path now is another file
  const std::string path = database_->path();
  reader.lock_.unlock();
  PM_ASSIGN_OR_RETURN(reader.separate_, Database::OpenReadOnly(path));
  reader.database_ = reader.separate_.get();
  return reader;
}

absl::Status SqliteStore::ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(Statement select,
                      reader->Prepare("SELECT latest_version FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(select.Bind(1, key).Step().status());
  const auto version = static_cast<uint64_t>(select.Int(0));
  return ReadItems(reader.get(), key, parameters.feature_dim,
                   [&](int64_t items, Gallery part) -> absl::Status {
                     part.version = version;
                     part.collection = key;
                     return visit(items, std::move(part));
                   });
}

absl::StatusOr<uint64_t> SqliteStore::SaveEmbedding(const PublicParameters& parameters,
                                                    const Embedding& embedding) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(parameters.collection_uuid));
  if (embedding.collection != 0 && embedding.collection != key) {
    return NoSuchCollection(parameters.collection_uuid);
  }
  PM_ASSIGN_OR_RETURN(const EmbeddingVersion former, VersionOf(database_.get(), key));
  const auto items_version = static_cast<int64_t>(embedding.items_version);
  if (items_version < former.items_version) return LaterEmbeddingError(former.items_version);
  for (const absl::string_view sql :
       {"DELETE FROM embedded_items WHERE collection = ?1",
        "DELETE FROM cell_parts WHERE collection = ?1",
        "DELETE FROM embeddings WHERE collection = ?1",
        "DELETE FROM deletions WHERE collection = ?1 AND version <= ?2"}) {
    PM_ASSIGN_OR_RETURN(Statement clear, database_->Prepare(sql));
    clear.Bind(1, key);
    if (absl::StrContains(sql, "?2")) clear.Bind(2, items_version);
    PM_RETURN_IF_ERROR(clear.Run());
  }
  PM_RETURN_IF_ERROR(WriteEmbeddedItems(database_.get(), key, embedding));
  const Matrix& anchors = embedding.anchor_coordinates;
  PM_ASSIGN_OR_RETURN(Statement save,
                      database_->Prepare("INSERT INTO embeddings (collection, version, "
                                         "items_version, objective, anchor_coordinates) "
                                         "VALUES (?1, ?2, ?3, ?4, ?5)"));
  save.Bind(1, key).Bind(2, former.version + 1).Bind(3, items_version);
  save.Bind(4, embedding.objective);
  save.BindBlob(5, anchors.data(), static_cast<size_t>(anchors.size()) * sizeof(double));
  PM_RETURN_IF_ERROR(save.Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return static_cast<uint64_t>(former.version + 1);
}

absl::StatusOr<std::optional<Embedding>> SqliteStore::LoadEmbedding(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(
      Statement select,
      reader->Prepare("SELECT version, objective, anchor_coordinates, items_version "
                      "FROM embeddings WHERE collection = ?1"));
  PM_ASSIGN_OR_RETURN(const bool found, select.Bind(1, key).Step());
  if (!found) return std::nullopt;
  Embedding embedding;
  embedding.version = static_cast<uint64_t>(select.Int(0));
  embedding.objective = select.Double(1);
  embedding.items_version = static_cast<uint64_t>(select.Int(3));
  absl::StatusOr<Matrix> anchors =
      DecodeMatrix("coordinates of the anchors", select.Bytes(2), parameters.anchor_count,
                   parameters.settings.embedding_dim);
  if (!anchors.ok()) return Damaged(*reader.get(), anchors.status().message());
  embedding.anchor_coordinates = *std::move(anchors);
  PM_RETURN_IF_ERROR(
      ReadEmbeddedItems(reader.get(), key, parameters.settings.embedding_dim, &embedding));
  PM_ASSIGN_OR_RETURN(embedding.deleted,
                      ReadDeletedSince(reader.get(), key, embedding.items_version, 0));
  return embedding;
}

}  // namespace privatemail::server

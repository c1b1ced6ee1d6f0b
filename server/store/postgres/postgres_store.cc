#include "server/store/postgres/postgres_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/connection.h"

namespace privatemail::server {

namespace {

// Versions are counted from 1; 0: there are no tables yet.
//
// - Blobs: as in decode.h.
// - Ids and payloads: bytea orders as SQLite does, holds any UTF-8 (text has no NUL) and is
//   independent of the database's encoding.
// - Keys: from sequences, never reused: no row passes from a deleted collection to a new one.
// - items.inserted, items.version: the versions of an item's insertion and of its last change.
// - items: partitions items_0 to items_15 (kPartitions), which shards divide among themselves.
// - deletions: tombstones until an embedding without the items is saved.
// - prepared_embeddings (of shards only): the embedding that waits for those of the other shards
//   or, with version 0, what is left of the one that it has replaced.
// - cells: of an embedding, whose key they name. Their keys are of the same sequence. Parts are
//   large and hard to compress.
constexpr int64_t kPostgresSchemaVersion = 2;
constexpr char kPostgresSchema[] = R"sql(
  CREATE TABLE collections (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid text NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL UNIQUE,
    parameters bytea NOT NULL,
    anchor_features bytea NOT NULL,
    anchor_labels bytea NOT NULL,
    items bigint NOT NULL DEFAULT 0,
    latest_version bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE deletions (
    collection bigint NOT NULL,
    version bigint NOT NULL,
    inserted bigint NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (collection, version)
  );
  CREATE SEQUENCE embedding_keys;
  CREATE TABLE embeddings (
    collection bigint PRIMARY KEY,
    key bigint NOT NULL UNIQUE,
    version bigint NOT NULL,
    items_version bigint NOT NULL,
    objective double precision NOT NULL,
    anchor_coordinates bytea NOT NULL
  );
  CREATE TABLE embedded_items (
    embedding bigint NOT NULL,
    position bigint NOT NULL,
    id bytea NOT NULL,
    label integer NOT NULL,
    coordinates bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (embedding, position)
  );
  CREATE TABLE cells (
    collection bigint PRIMARY KEY,
    key bigint NOT NULL,
    embedding bigint NOT NULL,
    quality bytea NOT NULL DEFAULT ''
  );
  CREATE TABLE cell_parts (
    cells bigint NOT NULL,
    part bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (cells, part)
  );
  ALTER TABLE cell_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
)sql";

// TakeOver deletes the rows of `cells` alone, because writers wait for it; this is run later.
constexpr char kDeleteFormerCellParts[] =
    "DELETE FROM cell_parts WHERE cells NOT IN (SELECT key FROM cells)";

constexpr char kItemsTable[] = R"sql(
  CREATE TABLE items (
    collection bigint NOT NULL,
    id bytea NOT NULL,
    label integer NOT NULL,
    features bytea NOT NULL,
    payload bytea NOT NULL,
    inserted bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (collection, id)
  ) PARTITION BY HASH (collection, id);
  CREATE INDEX items_by_version ON items (collection, version);
)sql";

// The advisory lock: "pmail" in ASCII.
constexpr int64_t kSchemaLock = 0x706d61696c;

absl::Status CreateItems(postgres::Transaction* transaction) {
  std::string sql = kItemsTable;
  for (int64_t i = 0; i < kPartitions; ++i) {
    absl::StrAppend(&sql, "CREATE TABLE items_", i, " PARTITION OF items FOR VALUES WITH (MODULUS ",
                    kPartitions, ", REMAINDER ", i, ");");
  }
  return transaction->Execute(sql);
}

// Copies the items of version 1, whose table had no partitions, in statements that each end within
// their time.
absl::Status PartitionItems(postgres::Transaction* transaction) {
  PM_RETURN_IF_ERROR(
      transaction->Execute("ALTER TABLE items RENAME TO former_items;"
                           "ALTER INDEX items_pkey RENAME TO former_items_pkey;"
                           "ALTER INDEX items_by_version RENAME TO former_items_by_version"));
  PM_RETURN_IF_ERROR(CreateItems(transaction));
  std::vector<int64_t> collections;
  PM_RETURN_IF_ERROR(transaction->SqlSession::Query(
      "SELECT key FROM collections", {},
      [&](const SqlRow& row) { collections.push_back(row.Int(0)); }));
  for (const int64_t collection : collections) {
    for (int64_t copied = -1; copied != 0;) {
      PM_ASSIGN_OR_RETURN(
          copied, transaction->QueryInt(
                      "WITH copied AS (INSERT INTO items SELECT * FROM former_items WHERE "
                      "collection = $1 AND version > $2 ORDER BY version LIMIT $3 RETURNING "
                      "version) SELECT max(version) FROM copied",
                      {collection, copied, kDeletedRows}));
    }
  }
  return transaction->Execute("DROP TABLE former_items; UPDATE schema_version SET version = 2");
}

// The name of a shard's schema.
std::string SchemaOf(const Shard& shard) {
  return absl::StrCat("privatemail_shard_", shard.number, "_of_", shard.of);
}

std::string ShardSchema(const Shard& shard) {
  const std::string schema = SchemaOf(shard);
  const int64_t first = (shard.number - 1) * kPartitions / shard.of;
  const int64_t end = shard.number * kPartitions / shard.of;
  std::string sql = absl::StrCat(
      "CREATE SCHEMA ", schema, "; CREATE VIEW ", schema,
      ".collections AS SELECT key, uuid, name, parameters, anchor_features, anchor_labels, "
      "(items * ",
      end - first, " + ", kPartitions - 1, ") / ", kPartitions,
      " AS items, latest_version FROM privatemail.collections; CREATE VIEW ", schema, ".items AS ");
  for (int64_t i = first; i < end; ++i) {
    absl::StrAppend(&sql, i == first ? "" : " UNION ALL ", "SELECT * FROM privatemail.items_", i);
  }
  for (const char* table : {"embeddings", "embedded_items", "cells", "cell_parts"}) {
    absl::StrAppend(&sql, "; CREATE TABLE ", schema, ".", table, " (LIKE privatemail.", table,
                    " INCLUDING ALL)");
  }
  return sql;
}

// Creates the tables in one transaction, under an advisory lock, or brings them to this version.
// FAILED_PRECONDITION: a newer program has used the database.
absl::Status PreparePostgresSchema(postgres::Pool* pool, const Shard& shard) {
  PM_ASSIGN_OR_RETURN(const auto transaction, postgres::Transaction::Begin(pool, /*writes=*/true));
  // Released at the end of the transaction.
  PM_RETURN_IF_ERROR(transaction->Run("SELECT pg_advisory_xact_lock($1)", {kSchemaLock}));
  const auto has_schema = [&](const std::string& name) {
    return transaction->QueryInt("SELECT count(*) FROM pg_namespace WHERE nspname = $1",
                                 {SqlText{name}});
  };
  // IF NOT EXISTS would need the right to create one that exists.
  PM_ASSIGN_OR_RETURN(const int64_t of_all, has_schema("privatemail"));
  if (of_all == 0) PM_RETURN_IF_ERROR(transaction->Execute("CREATE SCHEMA privatemail"));
  PM_RETURN_IF_ERROR(
      transaction->Execute("CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)"));
  PM_ASSIGN_OR_RETURN(
      const int64_t version,
      transaction->QueryInt("SELECT coalesce(max(version), 0) FROM schema_version", {}));
  if (version > kPostgresSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the store's schema has version ", version,
                                                      ", this program knows versions up to ",
                                                      kPostgresSchemaVersion));
  }
  if (version == 0) {
    PM_RETURN_IF_ERROR(transaction->Execute(kPostgresSchema));
    PM_RETURN_IF_ERROR(CreateItems(transaction.get()));
    PM_RETURN_IF_ERROR(transaction->Run("INSERT INTO schema_version (version) VALUES ($1)",
                                        {kPostgresSchemaVersion}));
  } else if (version == 1) {
    PM_RETURN_IF_ERROR(PartitionItems(transaction.get()));
  }
  // A shard makes the schemas of all, because it may be the one that takes over their embeddings.
  for (int64_t number = 1; shard.of > 1 && number <= shard.of; ++number) {
    const std::string schema = SchemaOf({number, shard.of});
    PM_ASSIGN_OR_RETURN(const int64_t exists, has_schema(schema));
    if (exists == 0) PM_RETURN_IF_ERROR(transaction->Execute(ShardSchema({number, shard.of})));
    PM_RETURN_IF_ERROR(transaction->Execute(
        absl::StrCat("CREATE TABLE IF NOT EXISTS ", schema,
                     ".prepared_embeddings (LIKE embeddings, PRIMARY KEY (collection))")));
  }
  return transaction->Commit();
}

constexpr char kCopyEmbeddedItems[] =
    "COPY embedded_items (embedding, position, id, label, coordinates, payload) "
    "FROM STDIN (FORMAT binary)";
constexpr uint16_t kEmbeddedColumns = 6;
constexpr size_t kPieceBytes = size_t{1} << 20;

// A column: its length and its value.
template <typename Unsigned>
void AppendValue(Unsigned value, std::string* rows) {
  postgres::AppendBigEndian<uint32_t>(sizeof(value), rows);
  postgres::AppendBigEndian(value, rows);
}

void AppendBytes(absl::string_view bytes, std::string* rows) {
  postgres::AppendBigEndian(static_cast<uint32_t>(bytes.size()), rows);
  absl::StrAppend(rows, bytes);
}

// The rows from `*done` that make about a megabyte, in the format of PostgreSQL's COPY.
// Header: signature, flags, length of an extension. Trailer: -1 as a number of columns.
std::string EncodeRows(int64_t key, const Embedding& embedding, size_t* done) {
  static constexpr char kHeader[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
  static constexpr char kTrailer[] = "\377\377";
  std::string rows(kHeader, sizeof(kHeader) - 1);
  for (; *done < embedding.ids.size() && rows.size() < kPieceBytes; ++*done) {
    const auto row = static_cast<Eigen::Index>(*done);
    postgres::AppendBigEndian(kEmbeddedColumns, &rows);
    AppendValue(static_cast<uint64_t>(key), &rows);
    AppendValue(static_cast<uint64_t>(row), &rows);
    AppendBytes(embedding.ids[*done], &rows);
    AppendValue(static_cast<uint32_t>(embedding.labels[*done]), &rows);
    AppendBytes(BytesOf(embedding.coordinates.row(row).data(), embedding.coordinates.cols()),
                &rows);
    AppendBytes(embedding.payloads[*done], &rows);
  }
  return rows.append(kTrailer, sizeof(kTrailer) - 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresStore>> PostgresStore::Open(
    const std::string& conninfo, const postgres::PoolOptions& options, const Shard& shard) {
  PM_ASSIGN_OR_RETURN(postgres::ConnectionInfo info, postgres::ConnectionInfo::Parse(conninfo));
  {
    postgres::Pool whole(info, {.size = 1});
    PM_RETURN_IF_ERROR(PreparePostgresSchema(&whole, shard));
  }
  if (shard.of > 1) info.search_path = absl::StrCat(SchemaOf(shard), ", ", info.search_path);
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(info), options, shard));
}

absl::StatusOr<std::unique_ptr<SqlSession>> PostgresStore::Begin(bool writes) {
  return postgres::Transaction::Begin(&pool_, writes);
}

const char* PostgresStore::LockClause(Lock lock) const {
  switch (lock) {
    case Lock::kKeepAlive:
      return " FOR KEY SHARE";
    case Lock::kChange:
      return " FOR NO KEY UPDATE";
    case Lock::kDelete:
      return " FOR UPDATE";
    default:
      return "";
  }
}

absl::Status PostgresStore::QueryByIds(SqlSession* session, absl::string_view sql,
                                       absl::string_view suffix, int64_t key,
                                       absl::Span<const std::string> ids,
                                       SqlSession::Visitor visit) {
  return session->Query(absl::StrCat(sql, " = ANY($2)", suffix), {key, SqlUtf8s{ids}}, visit);
}

absl::Status PostgresStore::InsertRows(SqlSession* session, absl::string_view table, int64_t key,
                                       absl::string_view columns, absl::Span<const SqlValue> values,
                                       absl::string_view suffix) {
  std::string sql =
      absl::StrCat("INSERT INTO ", table, " (collection, ", columns, ") SELECT $1, * FROM unnest(");
  std::vector<SqlValue> all = {key};
  for (const SqlValue& value : values) {
    absl::StrAppend(&sql, all.size() == 1 ? "$" : ", $", all.size() + 1);
    all.push_back(value);
  }
  return session->Query(absl::StrCat(sql, ")", suffix), all,
                        [](const SqlRow&) { return absl::OkStatus(); });
}

absl::StatusOr<int64_t> PostgresStore::NewKey(SqlSession* session) {
  return session->QueryInt("SELECT nextval('embedding_keys')", {});
}

absl::Status PostgresStore::WriteEmbeddedItems(SqlSession* session, int64_t key,
                                               const Embedding& embedding) {
  auto* transaction = static_cast<postgres::Transaction*>(session);
  for (size_t done = 0; done < embedding.ids.size();) {
    const std::string piece = EncodeRows(key, embedding, &done);
    PM_RETURN_IF_ERROR(transaction->Copy(kCopyEmbeddedItems, piece).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PostgresStore::PrunableVersion(SqlSession* session,
                                                       const CollectionRow& collection,
                                                       int64_t items_version) {
  std::string sql =
      "SELECT least($2, $3, (SELECT items_version FROM privatemail.embeddings WHERE collection = "
      "$1)";
  bool has_shards = false;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'privatemail\\_shard\\_%'", {},
      [&](const SqlRow& row) {
        has_shards = true;
        absl::StrAppend(&sql, ", coalesce((SELECT items_version FROM ", row.Text(0),
                        ".embeddings WHERE collection = $1), 0)");
      }));
  if (!has_shards) return items_version;
  return session->QueryInt(absl::StrCat(sql, ")"), {collection.key, items_version,
                                                    collection.latest_version - kKeptTombstones});
}

absl::Status PostgresStore::FollowIndexes(SqlSession* session) {
  return static_cast<postgres::Transaction*>(session)->Execute(
      "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off");
}

absl::Status PostgresStore::Notify(SqlSession* session, absl::string_view uuid) {
  return session->Run("SELECT pg_notify($1, $2)", {SqlText{kChangeChannel}, SqlText{uuid}});
}

absl::Status PostgresStore::Damaged(absl::string_view what) const {
  return OperatorOnlyError(absl::DataLossError(
      absl::StrCat("the store's database is damaged (", what, "): restore it from a backup")));
}

absl::Status PostgresStore::ImportParts(const StoredCollection& collection, GallerySource source) {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  PM_ASSIGN_OR_RETURN(const int64_t key,
                      InsertCollection(session.get(), collection, collection.items,
                                       collection.latest_version + collection.items));
  uint64_t version = collection.latest_version;
  PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
    PM_RETURN_IF_ERROR(InsertItems(session.get(), key, part, version));
    version += part.ids.size();
    return absl::OkStatus();
  }));
  PM_RETURN_IF_ERROR(Notify(session.get(), collection.parameters.collection_uuid));
  return session->Commit();
}

absl::StatusOr<uint64_t> PostgresStore::Delete(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(uuid, Lock::kDelete));
  const auto& [session, collection] = begun;
  PM_RETURN_IF_ERROR(DeleteRows(session.get(), kItems, collection.key));
  PM_RETURN_IF_ERROR(DeleteRows(session.get(), kDeletions, collection.key));
  PM_RETURN_IF_ERROR(DeleteCells(session.get(), collection.key));
  PM_RETURN_IF_ERROR(DeleteEmbedding(session.get(), collection.key, "embeddings"));
  PM_RETURN_IF_ERROR(session->Run("DELETE FROM collections WHERE key = $1", {collection.key}));
  PM_RETURN_IF_ERROR(Notify(session.get(), uuid));
  PM_RETURN_IF_ERROR(session->Commit());
  return static_cast<uint64_t>(collection.items);
}

absl::StatusOr<uint64_t> PostgresStore::NewEmbeddingVersion() {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  PM_ASSIGN_OR_RETURN(const int64_t key, NewKey(session.get()));
  PM_RETURN_IF_ERROR(session->Commit());
  return static_cast<uint64_t>(key);
}

absl::Status PostgresStore::TakeOver(const PublicParameters& parameters, uint64_t version,
                                     absl::FunctionRef<absl::Status()> poll) {
  if (!is_shard()) return absl::OkStatus();
  int64_t key = 0;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool taken,
                        TryTakeOver(parameters, static_cast<int64_t>(version), &key));
    if (taken) break;
    PM_RETURN_IF_ERROR(poll());
    absl::SleepFor(absl::Milliseconds(100));
  }
  DeletePrepared(parameters).IgnoreError();  // or else the next build does
  return absl::OkStatus();
}

absl::Status PostgresStore::DeletePrepared(const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kKeepAlive));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow replaced,
                      FindEmbedding(session.get(), collection.key, "prepared_embeddings"));
  if (replaced.version != 0) return absl::OkStatus();  // another build has begun
  PM_RETURN_IF_ERROR(DeleteRows(session.get(), kEmbeddedItems, replaced.key));
  PM_RETURN_IF_ERROR(session->Run(
      "DELETE FROM prepared_embeddings WHERE collection = $1 AND version = 0 AND key = $2",
      {collection.key, replaced.key}));
  PM_RETURN_IF_ERROR(session->Run(kDeleteFormerCellParts, {}));
  return session->Commit();
}

std::string PostgresStore::CountInShards(absl::string_view from) const {
  std::string sql = "SELECT 0";
  for (int64_t number = 1; number <= shard_.of; ++number) {
    absl::StrAppend(&sql, " + (SELECT count(*) FROM ", SchemaOf({number, shard_.of}), ".", from,
                    ")");
  }
  return sql;
}

absl::StatusOr<bool> PostgresStore::TryTakeOver(const PublicParameters& parameters, int64_t version,
                                                int64_t* key) {
  // First without the lock, which writers take.
  for (const Lock lock : {Lock::kRead, Lock::kChange}) {
    PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, lock));
    const auto& [session, collection] = begun;
    PM_ASSIGN_OR_RETURN(const EmbeddingRow present, FindEmbedding(session.get(), collection.key));
    // Another shard was the last to save one.
    if (present.version == version && (*key == 0 || present.key == *key)) return true;
    PM_ASSIGN_OR_RETURN(const EmbeddingRow own,
                        FindEmbedding(session.get(), collection.key, "prepared_embeddings"));
    if (*key == 0) *key = own.key;
    if (own.version != version || own.key != *key || present.version >= version) {
      return absl::AbortedError("another build has taken the place of this one");
    }
    PM_ASSIGN_OR_RETURN(
        const int64_t count,
        session->QueryInt(
            CountInShards("prepared_embeddings WHERE collection = $1 AND version = $2"),
            {collection.key, version}));
    if (count < shard_.of) return false;
    if (lock == Lock::kRead) continue;
    for (int64_t number = 1; number <= shard_.of; ++number) {
      PM_RETURN_IF_ERROR(static_cast<postgres::Transaction&>(*session).Execute(absl::StrCat(
          "SET LOCAL search_path = ", SchemaOf({number, shard_.of}), ", privatemail")));
      PM_ASSIGN_OR_RETURN(const EmbeddingRow former, FindEmbedding(session.get(), collection.key));
      PM_RETURN_IF_ERROR(session->Run("DELETE FROM cells WHERE collection = $1", {collection.key}));
      PM_RETURN_IF_ERROR(
          session->Run("DELETE FROM embeddings WHERE collection = $1", {collection.key}));
      PM_RETURN_IF_ERROR(session->Run(
          "INSERT INTO embeddings SELECT * FROM prepared_embeddings WHERE collection = $1",
          {collection.key}));
      PM_RETURN_IF_ERROR(
          session->Run("UPDATE prepared_embeddings SET key = $2, version = 0 WHERE collection = $1",
                       {collection.key, former.key}));
    }
    PM_RETURN_IF_ERROR(PruneTombstones(session.get(), collection, own.items_version));
    PM_RETURN_IF_ERROR(Notify(session.get(), parameters.collection_uuid));
    PM_RETURN_IF_ERROR(session->Commit());
  }
  return true;
}

absl::Status PostgresStore::DeleteEmbedding(SqlSession* session, int64_t collection,
                                            absl::string_view table) {
  PM_ASSIGN_OR_RETURN(const EmbeddingRow embedding, FindEmbedding(session, collection, table));
  PM_RETURN_IF_ERROR(DeleteRows(session, kEmbeddedItems, embedding.key));
  return session->Run(absl::StrCat("DELETE FROM ", table, " WHERE collection = $1"), {collection});
}

absl::StatusOr<bool> PostgresStore::RemoveSomeRows() {
  if (!is_shard()) return false;
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  for (const char* table : {"embeddings", "prepared_embeddings"}) {
    std::optional<int64_t> former;
    PM_RETURN_IF_ERROR(session->Query(
        absl::StrCat("SELECT collection FROM ", table,
                     " WHERE collection NOT IN (SELECT key FROM collections) LIMIT 1"),
        {}, [&](const SqlRow& row) { former = row.Int(0); }));
    if (!former.has_value()) continue;
    PM_RETURN_IF_ERROR(DeleteCells(session.get(), *former));
    PM_RETURN_IF_ERROR(DeleteEmbedding(session.get(), *former, table));
    PM_RETURN_IF_ERROR(session->Commit());
    return true;
  }
  PM_RETURN_IF_ERROR(session->Run(kDeleteFormerCellParts, {}));
  PM_RETURN_IF_ERROR(session->Commit());
  return false;
}

// TakeOver deletes the cells of all shards, so that those of a collection are of one embedding.
absl::StatusOr<std::optional<StoredCells>> PostgresStore::LoadCells(
    const PublicParameters& parameters, const EmbeddingVersion& of, SizeCheck check) {
  if (is_shard()) {
    PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
    const auto& [session, collection] = begun;
    PM_ASSIGN_OR_RETURN(
        const int64_t own,
        session->QueryInt("SELECT count(*) FROM cells WHERE collection = $1", {collection.key}));
    PM_ASSIGN_OR_RETURN(
        const int64_t all,
        session->QueryInt(CountInShards("cells WHERE collection = $1"), {collection.key}));
    if (own > 0 && all < shard_.of) {
      return absl::AbortedError("not all shards have stored their cells yet");
    }
  }
  return SqlStore::LoadCells(parameters, of, check);
}

// A lock of a session of its own: it ends with the daemon, too.
absl::StatusOr<std::shared_ptr<const void>> PostgresStore::ClaimCells(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<postgres::Connection> session,
                      postgres::Connection::Open(pool_.info()));
  PM_ASSIGN_OR_RETURN(
      const postgres::Result locked,
      session->Query("SELECT pg_try_advisory_lock(hashtextextended($1, 0))::int",
                     {SqlText{absl::StrCat(parameters.collection_uuid,
                                           is_shard() ? pool_.info().search_path : "")}}));
  if (locked.Int(0) == 1) return session;
  return std::shared_ptr<const void>();
}

}  // namespace privatemail::server

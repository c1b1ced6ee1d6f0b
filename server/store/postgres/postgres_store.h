// A collection store in a PostgreSQL database.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/store/postgres/connection.h"
#include "server/store/sql_store.h"

namespace privatemail::server {

// The channel of notifications; the payload is a UUID.
inline constexpr char kChangeChannel[] = "privatemail_changes";

// The items of all collections lie in so many partitions, by hash of collection and id. Statements
// lock them all with their indexes and are planned for each: 16 take 51 locks and 1 to 4 ms, 256
// took 771 and 30 to 60 ms.
inline constexpr int64_t kPartitions = 16;

// The schema `privatemail` of PostgreSQL 15 or later, which any number of daemons may share.
//   - Calls run concurrently, each on a session of a bounded pool. Changes to the items of one
//     collection are serialized by a row lock, so that versions commit in order.
//   - Every change notifies the other daemons (NOTIFY) in its transaction.
//   - During an outage calls return UNAVAILABLE.
// Errors of postgres::Connection and postgres::Pool; they never contain a password.
class PostgresStore final : public SqlStore {
 public:
  // conninfo: as in postgres::ConnectionInfo::Parse. Creates the schema, for which the role needs
  // the right. shard: of 1 to kPartitions. A shard's schema has views of its part of the items and
  // tables of its own embeddings and cells, which precede those of the whole in its sessions.
  // INVALID_ARGUMENT: conninfo. FAILED_PRECONDITION: a newer program has used the database.
  static absl::StatusOr<std::unique_ptr<PostgresStore>> Open(
      const std::string& conninfo, const postgres::PoolOptions& options = {},
      const Shard& shard = {});

  bool is_shard() const override { return shard_.of > 1; }

  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override;
  // On a shard it removes what its own tables have of a deleted collection: Delete leaves them
  // alone.
  absl::StatusOr<bool> RemoveSomeRows() override;
  // It is from the sequence of keys, which versions never exceed.
  absl::StatusOr<uint64_t> NewEmbeddingVersion() override;
  absl::Status TakeOver(const PublicParameters& parameters, uint64_t version,
                        absl::FunctionRef<absl::Status()> poll) override;
  absl::StatusOr<std::optional<StoredCells>> LoadCells(const PublicParameters& parameters,
                                                       const EmbeddingVersion& of,
                                                       SizeCheck check) override;
  absl::StatusOr<std::shared_ptr<const void>> ClaimCells(
      const PublicParameters& parameters) override;
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                     std::function<void(const absl::Status&)> report) override;

 protected:
  absl::Status ImportParts(const StoredCollection& collection, GallerySource source) override;

  absl::StatusOr<std::unique_ptr<SqlSession>> Begin(bool writes) override;
  const char* LockClause(Lock lock) const override;
  absl::Status QueryByIds(SqlSession* session, absl::string_view sql, absl::string_view suffix,
                          int64_t key, absl::Span<const std::string> ids,
                          SqlSession::Visitor visit) override;
  absl::Status InsertRows(SqlSession* session, absl::string_view table, int64_t key,
                          absl::string_view columns, absl::Span<const SqlValue> values,
                          absl::string_view suffix) override;
  absl::StatusOr<int64_t> NewKey(SqlSession* session) override;
  absl::Status WriteEmbeddedItems(SqlSession* session, int64_t key,
                                  const Embedding& embedding) override;
  // Without statistics, as soon after an ingest, the planner would sort all further rows for each
  // part instead.
  absl::Status FollowIndexes(SqlSession* session) override;
  // With shards the least version of all embeddings counts, and 0 for a shard without one, which
  // may be building it. The last kKeptTombstones stay: rows of encrypted searches follow by them.
  absl::StatusOr<int64_t> PrunableVersion(SqlSession* session, const CollectionRow& collection,
                                          int64_t items_version) override;
  absl::Status Notify(SqlSession* session, absl::string_view uuid) override;
  absl::Status Damaged(absl::string_view what) const override;

 private:
  PostgresStore(postgres::ConnectionInfo info, const postgres::PoolOptions& options, Shard shard)
      : shard_(shard), pool_(std::move(info), options) {}
  // Without effect if the table has none of the collection.
  static absl::Status DeleteEmbedding(SqlSession* session, int64_t collection,
                                      absl::string_view table);
  // TakeOver without the wait. False: not all shards have saved an embedding of this version.
  // key: of the one that this shard has saved; 0 at first, then set.
  absl::StatusOr<bool> TryTakeOver(const PublicParameters& parameters, int64_t version,
                                   int64_t* key);
  // The sum of a count over the schemas of all shards, as SQL. from: after "FROM SCHEMA.".
  std::string CountInShards(absl::string_view from) const;
  // Deletes what is left of the embedding that was replaced, and of its cells.
  absl::Status DeletePrepared(const PublicParameters& parameters);

  const Shard shard_;
  postgres::Pool pool_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

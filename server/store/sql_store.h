// The part of a store that SQLite and PostgreSQL share.
#ifndef PRIVATEMAIL_SERVER_STORE_SQL_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_SQL_STORE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// The value of a parameter $1, $2, ... of a statement; a view. Values never become part of SQL.
struct SqlText {  // without NUL
  absl::string_view value;
};
struct SqlUtf8 {  // an id or a payload
  absl::string_view value;
};
struct SqlBytes {
  absl::string_view value;
};
// Arrays. Several rows of InsertRows; PostgreSQL also takes them as parameters.
using SqlInts = absl::Span<const int64_t>;
struct SqlUtf8s {
  absl::Span<const std::string> values;
};
struct SqlByteses {
  absl::Span<const std::string> values;
};
using SqlValue =
    std::variant<int64_t, double, SqlText, SqlUtf8, SqlBytes, SqlInts, SqlUtf8s, SqlByteses>;

// A row of a result. Columns count from 0. NULL reads as 0 or empty.
class SqlRow {
 public:
  virtual int64_t Int(int column) const = 0;
  virtual double Double(int column) const = 0;
  virtual absl::string_view Bytes(int column) const = 0;  // valid during the visit

  uint64_t Count(int column) const { return static_cast<uint64_t>(Int(column)); }
  std::string Text(int column) const { return std::string(Bytes(column)); }

 protected:
  ~SqlRow() = default;
};

// A transaction: rolled back on destruction unless committed. Not thread-safe.
class SqlSession {
 public:
  virtual ~SqlSession() = default;

  // Runs one statement and passes its rows to `visit`, whose error ends it and is returned. No
  // statement may run in `visit`.
  using Visitor = absl::FunctionRef<absl::Status(const SqlRow& row)>;
  virtual absl::Status Query(const std::string& sql, absl::Span<const SqlValue> values,
                             Visitor visit) = 0;
  // visit: returns nothing or a status.
  template <typename Visit>
  absl::Status Query(const std::string& sql, std::initializer_list<SqlValue> values, Visit visit) {
    return Query(sql, absl::MakeConstSpan(values.begin(), values.size()), [&](const SqlRow& row) {
      if constexpr (std::is_void_v<decltype(visit(row))>) {
        visit(row);
        return absl::OkStatus();
      } else {
        return visit(row);
      }
    });
  }
  absl::Status Run(const std::string& sql, std::initializer_list<SqlValue> values) {
    return Query(sql, values, [](const SqlRow&) {});
  }
  // The first column of the only row; 0 without a row.
  absl::StatusOr<int64_t> QueryInt(const std::string& sql, std::initializer_list<SqlValue> values);

  // OK: the writes survive a crash of the program, of the database and of the machine.
  virtual absl::Status Commit() = 0;
};

// Tables whose rows can be millions, with the columns of their index. The rows belong to a row of
// the parent table, by its column `key`.
struct LargeTable {
  const char* name;
  const char* key;
  const char* order;
  const char* parent;
};
inline constexpr LargeTable kItems{"items", "collection", "version", "collections"};
inline constexpr LargeTable kDeletions{"deletions", "collection", "version", "collections"};
inline constexpr LargeTable kEmbeddedItems{"embedded_items", "embedding", "position", "embeddings"};
inline constexpr LargeTable kCellParts{"cell_parts", "cells", "part", "cells"};

// Rows that one statement of DeleteRows deletes, some seconds of work.
inline constexpr int64_t kDeletedRows = 20'000;

// Implements Store by SQL that SQLite and PostgreSQL have in common. DATA_LOSS also for rows that
// violate the schema.
class SqlStore : public Store {
 public:
  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override;
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override;
  absl::StatusOr<std::vector<CollectionState>> ListStates() override;
  absl::Status Create(const StoredCollection& collection) override;
  absl::StatusOr<int64_t> FixDimension(absl::string_view uuid, int64_t dimension) override;
  absl::Status AppendClassNames(absl::string_view uuid,
                                const std::vector<std::string>& names) override;
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                      absl::Span<const Item> items) override;
  absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& parameters,
                                           absl::Span<const std::string> ids) override;
  absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& parameters,
                                             absl::Span<const std::string> ids) override;
  absl::Status ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) override;
  absl::Status ReadChanges(const PublicParameters& parameters, uint64_t after,
                           ChangesVisitor visit) override;
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                         const Embedding& embedding) override;
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(
      const PublicParameters& parameters) override;
  absl::Status SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                         absl::string_view image) override;
  absl::Status SaveQuality(const PublicParameters& parameters, const EmbeddingVersion& of,
                           const CellQuality& quality) override;
  absl::StatusOr<std::optional<StoredCells>> LoadCells(const PublicParameters& parameters,
                                                       const EmbeddingVersion& of,
                                                       SizeCheck check) override;
  absl::StatusOr<std::optional<std::vector<DeletedItem>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) override;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& parameters) override;

 protected:
  // The lock under which a collection's row is read.
  enum class Lock {
    kRead,       // none: the session reads from one moment
    kKeepAlive,  // the collection cannot be deleted during the transaction
    kChange,     // also excludes changes of its items and embedding
    kDelete,     // also excludes kKeepAlive
  };
  struct CollectionRow {
    int64_t key = 0;
    int64_t items = 0;
    int64_t latest_version = 0;
  };
  struct CollectionSession {
    std::unique_ptr<SqlSession> session;
    CollectionRow collection;
  };
  // Key and versions of an embedding; zeros before the first.
  struct EmbeddingRow : EmbeddingVersion {
    int64_t key = 0;
  };

  // The derived stores implement these, since the databases differ here.
  virtual absl::StatusOr<std::unique_ptr<SqlSession>> Begin(bool writes) = 0;
  // The end of a SELECT that locks.
  virtual const char* LockClause(Lock /*lock*/) const { return ""; }
  // Runs SQL that ends before the condition on ids: "... AND id". $1 is `key`.
  virtual absl::Status QueryByIds(SqlSession* session, absl::string_view sql,
                                  absl::string_view suffix, int64_t key,
                                  absl::Span<const std::string> ids, SqlSession::Visitor visit) = 0;
  // Inserts rows into `columns` after the column `key_column`, which is `key` in each. values: an
  // array for each column. suffix: what follows the values.
  virtual absl::Status InsertRows(SqlSession* session, absl::string_view table, int64_t key,
                                  absl::string_view columns, absl::Span<const SqlValue> values,
                                  absl::string_view suffix = "") = 0;
  // A new key of an embedding or of cells, never used before.
  virtual absl::StatusOr<int64_t> NewKey(SqlSession* session) = 0;
  virtual absl::Status WriteEmbeddedItems(SqlSession* session, int64_t key,
                                          const Embedding& embedding) = 0;
  // Tombstones up to this version are superfluous, now that there is an embedding of
  // `items_version`.
  virtual absl::StatusOr<int64_t> PrunableVersion(SqlSession* /*session*/,
                                                  const CollectionRow& /*collection*/,
                                                  int64_t items_version) {
    return items_version;
  }
  // Makes the rest of the transaction read in the order of an index.
  virtual absl::Status FollowIndexes(SqlSession* /*session*/) { return absl::OkStatus(); }
  // Notifies other daemons of a change when the session commits.
  virtual absl::Status Notify(SqlSession* /*session*/, absl::string_view /*uuid*/) {
    return absl::OkStatus();
  }
  // DATA_LOSS naming file or database.
  virtual absl::Status Damaged(absl::string_view what) const = 0;

  // Adds the place to errors of decode.h.
  absl::Status Place(const absl::Status& status) const {
    return status.ok() ? status : Damaged(status.message());
  }
  // NOT_FOUND.
  absl::StatusOr<CollectionRow> FindCollection(SqlSession* session, absl::string_view uuid,
                                               Lock lock) const;
  absl::StatusOr<CollectionSession> BeginWith(absl::string_view uuid, Lock lock);
  // Stores the parameters unless `change` returns false or an error. items: of the collection.
  using ChangeFunction =
      absl::FunctionRef<absl::StatusOr<bool>(PublicParameters* parameters, int64_t items)>;
  absl::Status ChangeParameters(absl::string_view uuid, ChangeFunction change);
  // In the table of the embeddings, or in that of the ones that a shard has beside them.
  static absl::StatusOr<EmbeddingRow> FindEmbedding(SqlSession* session, int64_t collection,
                                                    absl::string_view table = "embeddings");
  // The key of the embedding of this version. ABORTED: the collection has another one.
  static absl::StatusOr<int64_t> FindEmbeddingKey(SqlSession* session, int64_t collection,
                                                  const EmbeddingVersion& of);
  // Returns the key. The counts are those at the commit. ALREADY_EXISTS.
  static absl::StatusOr<int64_t> InsertCollection(SqlSession* session,
                                                  const StoredCollection& collection,
                                                  uint64_t items, uint64_t latest_version);
  // Versions continue after `version`.
  absl::Status InsertItems(SqlSession* session, int64_t key, const Gallery& gallery,
                           uint64_t version);
  // The items of the collection or, exactly, of the shard.
  absl::StatusOr<int64_t> ExactItems(SqlSession* session, const CollectionRow& collection) const;
  // Deletes all rows of a key, in statements that each end within their time.
  static absl::Status DeleteRows(SqlSession* session, const LargeTable& table, int64_t key);
  static absl::Status DeleteCells(SqlSession* session, int64_t collection);
  // Deletes tombstones up to PrunableVersion.
  absl::Status PruneTombstones(SqlSession* session, const CollectionRow& collection,
                               int64_t items_version);

  absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after, int64_t limit,
                         bool with_features, absl::FunctionRef<bool(Item)> visit) override;

 private:
  absl::StatusOr<StoredCollection> ReadCollection(const SqlRow& row) const;
  absl::Status DecodeFeatures(absl::string_view id, absl::string_view blob, int64_t feature_dim,
                              float* values) const;
  absl::StatusOr<Item> ReadItem(const SqlRow& row, int64_t feature_dim, bool with_features) const;
  absl::Status ReadEmbeddedItems(SqlSession* session, int64_t key, int64_t embedding_dim,
                                 Embedding* embedding) const;
  // Updates the collection's counts, notifies other daemons and commits.
  absl::Status Finish(SqlSession* session, absl::string_view uuid, int64_t key, uint64_t items,
                      uint64_t latest_version);
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQL_STORE_H_

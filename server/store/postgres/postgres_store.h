// A collection store in a PostgreSQL database.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/store/postgres/pool.h"
#include "server/store/store.h"

namespace privatemail::server {

// The schema `privatemail` of PostgreSQL 15 or later, which any number of daemons may share.
//   - Calls run concurrently, each on a session of a bounded pool. Changes to the items of one
//     collection are serialized by a row lock, so that versions commit in order.
//   - Every change notifies the other daemons (NOTIFY) in its transaction.
//   - During an outage calls return UNAVAILABLE.
// Errors of postgres::Connection and postgres::Pool; they never contain a password.
class PostgresStore final : public Store {
 public:
  // conninfo: as in postgres::ConnectionInfo::Parse. Creates the schema, for which the role needs
  // the right. INVALID_ARGUMENT: conninfo. FAILED_PRECONDITION: a newer program has used the
  // database.
  static absl::StatusOr<std::unique_ptr<PostgresStore>> Open(
      const std::string& conninfo, const postgres::PoolOptions& options = {});

  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override;
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override;
  absl::StatusOr<std::vector<CollectionState>> ListStates() override;
  absl::Status Create(const StoredCollection& collection) override;
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override;
  absl::StatusOr<int64_t> FixDimension(absl::string_view uuid, int64_t dimension) override;
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
  absl::StatusOr<std::shared_ptr<const void>> ClaimCells(
      const PublicParameters& parameters) override;
  absl::StatusOr<std::optional<std::vector<DeletedItem>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) override;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& parameters) override;
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                     std::function<void(const absl::Status&)> report) override;

  // ReadGallery for `count` existing items from number `first` on, ordered by id. Seeking takes
  // O(first). ABORTED: items have changed since `collection` was loaded.
  absl::Status ReadRange(const StoredCollection& collection, int64_t first, int64_t count,
                         GalleryVisitor visit);

  // SaveEmbedding with `count` rows that other processes encode: pieces of EmbeddedItemsEncoder for
  // `key`, in any order, "" after the last. `embedding` has no rows. An error of `next` ends it and
  // is returned. INTERNAL: another number of rows.
  using EncodedRows = absl::FunctionRef<absl::StatusOr<std::string>()>;
  absl::StatusOr<int64_t> NewEmbeddingKey();
  absl::StatusOr<uint64_t> SaveEncoded(const PublicParameters& parameters,
                                       const Embedding& embedding, int64_t key, int64_t count,
                                       EncodedRows next);

 protected:
  absl::Status ImportParts(const StoredCollection& collection, GallerySource source) override;
  absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after, int64_t limit,
                         bool with_features, absl::FunctionRef<bool(Item)> visit) override;

 private:
  PostgresStore(postgres::ConnectionInfo info, const postgres::PoolOptions& options)
      : pool_(std::move(info), options) {}

  postgres::Pool pool_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

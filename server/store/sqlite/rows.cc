#include "server/store/sqlite/rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;

absl::StatusOr<int64_t> CountRows(Database* database, absl::string_view table, int64_t key) {
  PM_ASSIGN_OR_RETURN(
      Statement count,
      database->Prepare(absl::StrCat("SELECT count(*) FROM ", table, " WHERE collection = ?1")));
  PM_RETURN_IF_ERROR(count.Bind(1, key).Step().status());
  return count.Int(0);
}

// Adds the file to errors of decode.h.
absl::Status Place(const Database& database, const absl::Status& status) {
  return status.ok() ? status : Damaged(database, status.message());
}

}  // namespace

absl::Status Damaged(const Database& database, absl::string_view what) {
  return OperatorOnlyError(absl::DataLossError(absl::StrCat(
      "database file ", database.path(), " is damaged (", what, "): restore it from a backup")));
}

absl::StatusOr<StoredCollection> ReadCollection(const Database& database, const Statement& row) {
  absl::StatusOr<StoredCollection> collection =
      DecodeCollection(row.Bytes(0), row.Bytes(1), row.Bytes(2), row.Bytes(3));
  PM_RETURN_IF_ERROR(Place(database, collection.status()));
  collection->items = static_cast<uint64_t>(row.Int(4));
  collection->latest_version = static_cast<uint64_t>(row.Int(5));
  collection->key = row.Int(6);
  return collection;
}

absl::string_view ItemColumns(bool with_features) {
  return with_features ? "id, label, payload, version, features" : "id, label, payload, version";
}

absl::StatusOr<Item> ReadItem(const Database& database, const Statement& row, int64_t feature_dim,
                              bool with_features) {
  Item item;
  item.id = std::string(row.Bytes(0));
  item.label = static_cast<int32_t>(row.Int(1));
  item.payload = std::string(row.Bytes(2));
  item.version = static_cast<uint64_t>(row.Int(3));
  if (!with_features) return item;
  item.features.resize(static_cast<size_t>(feature_dim));
  PM_RETURN_IF_ERROR(
      Place(database, DecodeFeatures(item.id, row.Bytes(4), feature_dim, item.features.data())));
  return item;
}

absl::Status ReadItems(Database* database, int64_t key, int64_t feature_dim,
                       Store::GalleryVisitor visit) {
  PM_ASSIGN_OR_RETURN(const int64_t items, CountRows(database, "items", key));
  PM_ASSIGN_OR_RETURN(Statement select,
                      database->Prepare("SELECT id, label, features, payload FROM items "
                                        "WHERE collection = ?1 ORDER BY id"));
  select.Bind(1, key);
  int64_t first = 0;
  do {
    Gallery part;
    part.features.resize(std::min(GalleryPartRows(feature_dim), items - first), feature_dim);
    for (int64_t row = 0; row < part.features.rows(); ++row) {
      PM_ASSIGN_OR_RETURN(const bool more, select.Step());
      if (!more) return Damaged(*database, "the index of items disagrees with the items");
      part.ids.emplace_back(select.Bytes(0));
      part.labels.push_back(static_cast<int32_t>(select.Int(1)));
      PM_RETURN_IF_ERROR(
          Place(*database, DecodeFeatures(part.ids.back(), select.Bytes(2), feature_dim,
                                          part.features.row(row).data())));
      part.payloads.emplace_back(select.Bytes(3));
    }
    first += part.features.rows();
    PM_RETURN_IF_ERROR(visit(items, std::move(part)));
  } while (first < items);
  return absl::OkStatus();
}

absl::Status WriteEmbeddedItems(Database* database, int64_t key, const Embedding& embedding) {
  PM_ASSIGN_OR_RETURN(Statement insert,
                      database->Prepare("INSERT INTO embedded_items (collection, position, id, "
                                        "label, coordinates, payload) "
                                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  const size_t row_bytes = static_cast<size_t>(embedding.coordinates.cols()) * sizeof(double);
  for (size_t i = 0; i < embedding.ids.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    insert.Bind(1, key).Bind(2, int64_t{row}).BindText(3, embedding.ids[i]);
    insert.Bind(4, int64_t{embedding.labels[i]});
    insert.BindBlob(5, embedding.coordinates.row(row).data(), row_bytes);
    insert.BindText(6, embedding.payloads[i]);
    PM_RETURN_IF_ERROR(insert.Run());
  }
  return absl::OkStatus();
}

absl::Status ReadEmbeddedItems(Database* database, int64_t key, int64_t embedding_dim,
                               Embedding* embedding) {
  PM_ASSIGN_OR_RETURN(const int64_t rows, CountRows(database, "embedded_items", key));
  embedding->coordinates.resize(rows, embedding_dim);
  PM_ASSIGN_OR_RETURN(Statement select,
                      database->Prepare("SELECT id, label, coordinates, payload FROM "
                                        "embedded_items WHERE collection = ?1 ORDER BY position"));
  select.Bind(1, key);
  for (int64_t row = 0; row < rows; ++row) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return Damaged(*database, "an embedding has fewer items than were counted");
    embedding->ids.emplace_back(select.Bytes(0));
    embedding->labels.push_back(static_cast<int32_t>(select.Int(1)));
    PM_RETURN_IF_ERROR(
        Place(*database, DecodeCoordinates(embedding->ids.back(), select.Bytes(2), embedding_dim,
                                           embedding->coordinates.row(row).data())));
    embedding->payloads.emplace_back(select.Bytes(3));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeletedItem>> ReadDeletedSince(Database* database, int64_t key,
                                                          uint64_t items_version, uint64_t after) {
  PM_ASSIGN_OR_RETURN(
      Statement select,
      database->Prepare("SELECT id, version FROM deletions WHERE collection = ?1 AND "
                        "version > max(?2, ?3) AND inserted <= ?2 ORDER BY version"));
  select.Bind(1, key).Bind(2, static_cast<int64_t>(items_version));
  select.Bind(3, static_cast<int64_t>(after));
  std::vector<DeletedItem> items;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return items;
    items.push_back({std::string(select.Bytes(0)), static_cast<uint64_t>(select.Int(1))});
  }
}

}  // namespace privatemail::server

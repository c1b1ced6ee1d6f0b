#include "server/store/rows.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

using sqlite::Database;
using sqlite::Statement;

absl::Status Damaged(const Database& database, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("database file ", database.path(), " is damaged (", what,
                                          "): restore it from a backup"));
}

// OK when a blob holds exactly rows x cols values, asked before anything is allocated for them.
template <typename Value>
absl::Status CheckSize(const Database& database, absl::string_view what, absl::string_view blob,
                       int64_t rows, int64_t cols) {
  const auto values = static_cast<int64_t>(blob.size() / sizeof(Value));
  const bool exact = rows >= 0 && cols >= 1 && blob.size() % sizeof(Value) == 0 &&
                     values % cols == 0 && values / cols == rows;
  if (exact) return absl::OkStatus();
  return Damaged(database, absl::StrCat(what, ": expected ", rows, " x ", cols, " values of ",
                                        sizeof(Value), " bytes, got ", blob.size(), " bytes"));
}

template <typename Value>
void Copy(absl::string_view blob, Value* values) {
  if (!blob.empty()) std::memcpy(values, blob.data(), blob.size());
}

absl::StatusOr<int64_t> CountRows(Database* database, absl::string_view table, int64_t key) {
  PM_ASSIGN_OR_RETURN(
      Statement count,
      database->Prepare(absl::StrCat("SELECT count(*) FROM ", table, " WHERE collection = ?1")));
  PM_RETURN_IF_ERROR(count.Bind(1, key).Step().status());
  return count.Int(0);
}

}  // namespace

absl::StatusOr<StoredCollection> ReadCollection(const Database& database, const Statement& row) {
  StoredCollection collection;
  collection.name = std::string(row.Bytes(0));
  const std::string what = absl::StrCat("collection ", collection.name);
  v1::PublicParameters proto;
  const absl::string_view bytes = row.Bytes(1);
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Damaged(database, absl::StrCat(what, ": its parameters cannot be parsed"));
  }
  auto parameters = FromProto(proto);
  if (!parameters.ok()) {
    return Damaged(database, absl::StrCat(what, ": ", parameters.status().message()));
  }
  collection.parameters = *std::move(parameters);
  const int64_t count = collection.parameters.anchor_count;
  const int64_t dim = collection.parameters.feature_dim;
  PM_RETURN_IF_ERROR(
      CheckSize<float>(database, absl::StrCat(what, " anchors"), row.Bytes(2), count, dim));
  PM_RETURN_IF_ERROR(
      CheckSize<int32_t>(database, absl::StrCat(what, " anchor labels"), row.Bytes(3), count, 1));
  Anchors& anchors = collection.anchors;
  anchors.features.resize(count, dim);
  anchors.labels.resize(static_cast<size_t>(count));
  Copy(row.Bytes(2), anchors.features.data());
  Copy(row.Bytes(3), anchors.labels.data());
  if (DigestOf(anchors) != collection.parameters.anchor_digest) {
    return Damaged(database, absl::StrCat(what, ": the anchors do not match their digest"));
  }
  collection.items = static_cast<uint64_t>(row.Int(4));
  return collection;
}

absl::Status ReadMatrix(const Database& database, absl::string_view what, absl::string_view blob,
                        int64_t rows, int64_t cols, Matrix* matrix) {
  PM_RETURN_IF_ERROR(CheckSize<double>(database, what, blob, rows, cols));
  matrix->resize(rows, cols);
  Copy(blob, matrix->data());
  return absl::OkStatus();
}

absl::StatusOr<Gallery> ReadGallery(Database* database, int64_t key, int64_t feature_dim) {
  PM_ASSIGN_OR_RETURN(const int64_t rows, CountRows(database, "items", key));
  Gallery gallery;
  gallery.features.resize(rows, feature_dim);
  PM_ASSIGN_OR_RETURN(Statement select,
                      database->Prepare("SELECT id, label, features, payload FROM items "
                                        "WHERE collection = ?1 ORDER BY id"));
  select.Bind(1, key);
  for (int64_t row = 0; row < rows; ++row) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return Damaged(*database, "the index of items disagrees with the items");
    gallery.ids.emplace_back(select.Bytes(0));
    gallery.labels.push_back(static_cast<int32_t>(select.Int(1)));
    PM_RETURN_IF_ERROR(CheckSize<float>(*database,
                                        absl::StrCat("features of item ", gallery.ids.back()),
                                        select.Bytes(2), 1, feature_dim));
    Copy(select.Bytes(2), gallery.features.row(row).data());
    gallery.payloads.emplace_back(select.Bytes(3));
  }
  return gallery;
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
        CheckSize<double>(*database, absl::StrCat("coordinates of item ", embedding->ids.back()),
                          select.Bytes(2), 1, embedding_dim));
    Copy(select.Bytes(2), embedding->coordinates.row(row).data());
    embedding->payloads.emplace_back(select.Bytes(3));
  }
  return absl::OkStatus();
}

ItemWriter::ItemWriter(int64_t key, Statement find, Statement insert, Statement update)
    : key_(key), find_(std::move(find)), insert_(std::move(insert)), update_(std::move(update)) {}

absl::StatusOr<ItemWriter> ItemWriter::Prepare(Database* database, int64_t key) {
  PM_ASSIGN_OR_RETURN(Statement find,
                      database->Prepare("SELECT rowid, label, features, payload FROM items "
                                        "WHERE collection = ?1 AND id = ?2"));
  PM_ASSIGN_OR_RETURN(Statement insert,
                      database->Prepare("INSERT INTO items (collection, id, label, features, "
                                        "payload) VALUES (?1, ?2, ?3, ?4, ?5)"));
  PM_ASSIGN_OR_RETURN(Statement update,
                      database->Prepare("UPDATE items SET label = ?2, features = ?3, "
                                        "payload = ?4 WHERE rowid = ?1"));
  return ItemWriter(key, std::move(find), std::move(insert), std::move(update));
}

absl::Status ItemWriter::Write(const Item& item, UpsertResult* result) {
  const absl::string_view features(reinterpret_cast<const char*>(item.features.data()),
                                   item.features.size() * sizeof(float));
  find_.Reset();
  PM_ASSIGN_OR_RETURN(const bool found, find_.Bind(1, key_).BindText(2, item.id).Step());
  if (!found) {
    ++result->inserted;
    insert_.Bind(1, key_).BindText(2, item.id).Bind(3, int64_t{item.label});
    return insert_.BindBlob(4, features.data(), features.size()).BindText(5, item.payload).Run();
  }
  if (find_.Int(1) == item.label && find_.Bytes(2) == features && find_.Bytes(3) == item.payload) {
    ++result->unchanged;
    return absl::OkStatus();
  }
  ++result->updated;
  update_.Bind(1, find_.Int(0)).Bind(2, int64_t{item.label});
  return update_.BindBlob(3, features.data(), features.size()).BindText(4, item.payload).Run();
}

}  // namespace privatemail

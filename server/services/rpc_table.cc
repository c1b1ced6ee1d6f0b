#include "server/services/rpc_table.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/public_parameters.h"
#include "common/lattice/scores.h"
#include "common/wire/parameters_proto.h"
#include "server/services/collection_state.h"

namespace privatemail::server {
namespace {

constexpr Scopes kSearching = kSearchScope | kAdminScope;
constexpr Scopes kWriting = kWriteScope | kAdminScope;

v1::CellsStatus GetCellsStatus(const CollectionView& view) {
  if (view.published->parameters.cell_partitions.empty()) return v1::CELLS_STATUS_NONE;
  if (view.retriever == nullptr) return v1::CELLS_STATUS_NOT_BUILT;
  if (view.cells != nullptr) return v1::CELLS_STATUS_READY;
  return view.cells_problem.ok() ? v1::CELLS_STATUS_PREPARING : v1::CELLS_STATUS_FAILED;
}

// While rows are loaded they are as many as the items.
void EncryptedToProto(const CollectionView& view, v1::EncryptedStatus* proto) {
  const std::shared_ptr<const EncryptedRows> rows = view.encrypted->rows();
  const int64_t count = rows == nullptr ? static_cast<int64_t>(view.items) : rows->rows;
  if (count == 0) return;
  proto->set_delta(
      static_cast<uint32_t>(lattice::ChooseDelta(count, view.published->parameters.feature_dim)));
  proto->set_rows(static_cast<uint64_t>(count));
  if (rows == nullptr) return;
  proto->set_table_bytes(rows->table_bytes());
  proto->set_payload_bytes(rows->payload_bytes());
}

}  // namespace

const std::vector<Rpc>& Rpcs() {
  static const std::vector<Rpc> all = {
      // Parameters are public to every key of the collection.
      {"GetCollection", kAnyScope, "collection"},
      {"GetAnchors", kSearching, "collection"},
      {"Retrieve", kSearching, "collection"},
      // Sends item vectors; the operator allows that by creating the collection with cells.
      {"RetrieveCells", kSearching, "collection"},
      // Sends ids, labels and norms of all items; the operator allows that by offering the scheme.
      {"SearchEncrypted", kSearching, "collection"},
      {"CreateCollection", kAdminScope, "name"},
      {"ListCollections", kAnyScope, ""},  // filtered by the key's collections
      {"DeleteCollection", kAdminScope, "name"},
      {"UpsertItems", kWriting, "collection"},
      {"BuildEmbedding", kWriting, "collection"},
      // A search key gets only the nearest items of a noisy release: exact vectors, payloads and
      // counts need scope write.
      {"DeleteItems", kWriting, "collection"},
      {"GetItems", kWriting, "collection"},
      {"ScrollItems", kWriting, "collection"},
      {"CountItems", kWriting, "collection"},
      // A snapshot holds the whole collection in the clear; a restore may replace a lost one.
      {"SnapshotCollection", kAdminScope, "collection"},
      {"RestoreCollection", kAdminScope, "collection"},
      {"CreateKey", kAdminScope, "", /*all_collections=*/true},
      {"ListKeys", kAdminScope, "", /*all_collections=*/true},
      {"RevokeKey", kAdminScope, "", /*all_collections=*/true},
      {"Check", 0, ""},  // grpc.health.v1; a collection's health needs a key, see HealthService
  };
  return all;
}

const Rpc& FindRpc(absl::string_view name) {
  for (const Rpc& rpc : Rpcs()) {
    if (name == rpc.name) return rpc;
  }
  std::fprintf(stderr, "rpc_table.cc has no entry for %s\n", std::string(name).c_str());
  std::abort();
}

std::string GetCollectionName(const google::protobuf::Message& request, const Rpc& rpc) {
  if (rpc.collection[0] == '\0') return "";
  const auto* field = request.GetDescriptor()->FindFieldByName(rpc.collection);
  return request.GetReflection()->GetString(request, field);
}

absl::StatusOr<CollectionView> FindCollection(const Catalog& catalog, const std::string& name,
                                              const std::string& fingerprint) {
  PM_ASSIGN_OR_RETURN(CollectionView view, catalog.Find(name));
  PM_RETURN_IF_ERROR(CheckFingerprint(view.published->fingerprint, fingerprint));
  return view;
}

absl::Status CheckNotEmpty(absl::string_view field, absl::string_view value) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be named, but is empty"));
}

absl::Status CheckSameCollection(absl::string_view first, absl::string_view actual, int64_t number,
                                 absl::string_view consequence) {
  if (first == actual) return absl::OkStatus();
  return InvalidField("collection",
                      absl::StrCat("must be the same in every message of the stream: expected '",
                                   first, "', got '", absl::CHexEscape(actual.substr(0, 64)),
                                   "' in message ", number, " (from 0); ", consequence));
}

absl::Status ResponseTooLargeError(int64_t max_bytes, absl::string_view remedy) {
  return absl::ResourceExhaustedError(absl::StrCat("the response would exceed the limit of ",
                                                   max_bytes,
                                                   " bytes (max_message_bytes): ", remedy));
}

absl::Status CheckAnchorMemory(absl::string_view quantity, int64_t anchors, int64_t dims,
                               const Limits& limits) {
  // The received float values and their rows scaled to length 1 in double.
  constexpr int64_t kValueBytes = sizeof(float) + sizeof(double);
  return CheckLimit(absl::StrCat(quantity, " in bytes"), anchors * dims * kValueBytes,
                    limits.max_request_memory, "max_request_memory");
}

void CollectionToProto(const CollectionView& view, v1::GetCollectionResponse* proto) {
  ToProto(view.published->parameters, proto->mutable_parameters());
  proto->set_fingerprint(view.published->fingerprint);
  proto->set_items(view.items);
  if (view.retriever != nullptr) {
    proto->set_embedded_items(view.embedded_items());
    proto->set_embedding_version(view.retriever->version());
    proto->set_index(view.retriever->index_description());
  }
  proto->set_name(view.published->name);
  proto->set_changes_since_embedding(view.changes_since_embedding());
  proto->set_cells(DescribeCells(view));
  proto->set_cells_status(GetCellsStatus(view));
  proto->set_cells_partitions(
      static_cast<uint32_t>(view.published->parameters.cell_partitions.size()));
  if (view.encrypted != nullptr) EncryptedToProto(view, proto->mutable_encrypted());
  if (proto->cells_status() == v1::CELLS_STATUS_READY) {
    const int64_t hidden = view.hidden_in_cells == nullptr ? 0 : view.hidden_in_cells->count;
    proto->set_cells_items(static_cast<uint64_t>(view.cells->items() - hidden));
  }
}

}  // namespace privatemail::server

// Checks and descriptions of a collection's state.
#ifndef PRIVATEMAIL_SERVER_SERVICES_COLLECTION_STATE_H_
#define PRIVATEMAIL_SERVER_SERVICES_COLLECTION_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/engine/catalog.h"
#include "server/services/call.h"

namespace privatemail::server {

// The collection whose public parameters the searcher holds.
// NOT_FOUND: no such collection. FAILED_PRECONDITION: fingerprint mismatch.
absl::StatusOr<CollectionView> FindCollection(const Catalog& catalog, const std::string& name,
                                              const std::string& fingerprint);

// FAILED_PRECONDITION: the collection has no items.
absl::Status CheckHasItems(const CollectionView& view);
absl::Status CheckHasItems(const std::string& name, int64_t items);

// FAILED_PRECONDITION: the collection is not built.
absl::StatusOr<std::shared_ptr<const Retriever>> RequireRetriever(const CollectionView& view);

// FAILED_PRECONDITION: the collection has no cells or is not built. UNAVAILABLE: its cell index is
// being built, or the build failed.
absl::StatusOr<std::shared_ptr<const CellIndex>> RequireCells(const CollectionView& view);

// UNAVAILABLE, which makes clients retry: the request is for a later embedding than that of
// `version`, which another daemon of the same store may have announced.
template <typename Request>
absl::Status CheckEmbeddingVersion(const Request& request, uint64_t version) {
  if (request.embedding_version() <= version) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "embedding_version ", request.embedding_version(), " of collection ", request.collection(),
      " is not here yet: this daemon has version ", version, "; send it again"));
}

// The state of a collection that the front which calls this shard has seen; nullopt: another calls.
struct SeenByFront {
  int64_t key = 0;  // of the collection in the store
  uint64_t items_version = 0;
};
std::optional<SeenByFront> SeenBy(const Catalog& catalog, const Call& call);

// ABORTED: this is another collection than the front has seen, or items that were deleted then are
// not hidden yet.
absl::Status CheckDeletionsAreHidden(const Catalog& catalog, const CollectionView& view,
                                     const Call& call);

// UNAVAILABLE: the rows of encrypted searches are being loaded, or cannot be. An error
// of the store keeps its mark as operator-only.
absl::StatusOr<std::shared_ptr<const EncryptedRows>> RequireRows(const CollectionView& view);

// Whether the rows and cells that the store has of a collection are in memory. True also if there
// is no memory for the rows or if cells cannot be made, which takes an operator.
bool IsLoaded(const CollectionView& view);

// "ready: 8000 items".
inline std::string ReadyCells(uint64_t items) { return absl::StrCat("ready: ", items, " items"); }

// ReadyCells, "being made" or the error of RequireCells; both first and last if those of
// an earlier build answer; empty if the collection has no cells or is not built.
std::string DescribeCells(const CollectionView& view);

// All fields but `changes`, `max_k`, `quality`, `build_share` and `cells_share`.
void CollectionToProto(const CollectionView& view, v1::GetCollectionResponse* proto);
// CollectionToProto, and the progress of a build that runs.
void DescribeCollection(const CollectionView& view, v1::GetCollectionResponse* proto);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_COLLECTION_STATE_H_

// From what a store holds to what answers, and what is said of names. For the parts of Catalog.
#ifndef PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_
#define PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/catalog.h"

namespace privatemail::server {

std::shared_ptr<const PublishedCollection> Publish(StoredCollection collection);
std::shared_ptr<const Retriever> MakeRetriever(const PublishedCollection& published,
                                               Embedding embedding, const IndexOptions& index);

// Partitions of the anchors into so many cells, at low priority. INVALID_ARGUMENT as
// PartitionAnchors.
absl::StatusOr<std::vector<CellPartition>> PartitionInto(const std::vector<int64_t>& cells,
                                                         const Anchors& anchors);

// The codebook that a product code needs, trained at low priority; nothing for other codes.
// INVALID_ARGUMENT as TrainCodebook.
absl::StatusOr<std::optional<ProductCodebook>> CodebookFor(const std::optional<CellCode>& code,
                                                           const Anchors& anchors);

// Items of `cells` that a retriever which was made of later ones does not have: they were deleted
// in between, be it by another daemon that told of it by this embedding alone. None where the
// retriever is not later. O(n log n).
std::vector<std::string> IdsNotIn(const Retriever& retriever, const CellIndex& cells);

// RESOURCE_EXHAUSTED naming limit and value: `what` takes more than `memory`.
absl::Status CheckMaking(absl::string_view what, int64_t bytes, int64_t memory);

// INVALID_ARGUMENT: it cannot be a collection's.
absl::Status CheckName(absl::string_view name);
// NOT_FOUND.
absl::Status NoSuchCollection(absl::string_view name);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_PUBLISH_H_

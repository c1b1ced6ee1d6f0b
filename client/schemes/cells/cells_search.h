// Searches by the scheme cells (cell_scheme.h): from the published collection to the matches.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELLS_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELLS_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/schemes/cells/cell_answer.h"
#include "client/schemes/cells/cell_scheme.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/scheme_search.h"
#include "privatemail/client_limits.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The public side of a collection, which searches share. Immutable, thread-safe.
struct CellsCollection {
  v1::GetCollectionResponse published;
  CellScheme scheme;

  // From the responses of GetCollection and GetAnchors.
  // INVALID_ARGUMENT, DATA_LOSS: malformed, or not of one collection.
  // Before the anchors are fetched:
  // FAILED_PRECONDITION: the collection is not built or has no cells.
  // RESOURCE_EXHAUSTED: a search would take more than limits.max_memory.
  static absl::StatusOr<std::shared_ptr<const CellsCollection>> Create(
      const v1::GetCollectionResponse& collection, const FetchAnchors& fetch_anchors,
      const ClientLimits& limits);

  // Whether the scheme is that of what the server publishes now.
  bool IsOf(const v1::GetCollectionResponse& now) const {
    return now.embedding_version() > 0 && now.fingerprint() == published.fingerprint() &&
           now.parameters().SerializeAsString() == published.parameters().SerializeAsString();
  }
};

// The messages of an answer.
using CellsAnswer = std::vector<v1::RetrieveCellsResponse>;

class CellsSearch : public SchemeSearch {
 public:
  // request must outlive the search.
  // INVALID_ARGUMENT naming the field: out of range, or items that the published quality cannot
  //   choose.
  // FAILED_PRECONDITION: the cells could not be prepared.
  // UNAVAILABLE: the cells are being prepared.
  // RESOURCE_EXHAUSTED: the items, decoded, exceed limits.max_memory.
  static absl::StatusOr<std::unique_ptr<SchemeSearch>> Create(
      std::shared_ptr<const CellsCollection> collection, const SearchRequest& request,
      const ClientLimits& limits);

  absl::StatusOr<PreparedSearch> Prepare(size_t first, size_t count, const ChargeFunction& charge,
                                         BitSource& bits) override;
  SearchWork WorkOf(const SearchAnswer& answer) const override;
  absl::Status Finish(PreparedSearch prepared, const SearchAnswer& answer,
                      absl::Span<SearchResult> results) const override;

 private:
  CellsSearch(std::shared_ptr<const CellsCollection> collection, const SearchRequest& request,
              const ClientLimits& limits)
      : collection_(std::move(collection)), request_(request), limits_(limits) {}

  absl::Status ChooseItems();

  std::shared_ptr<const CellsCollection> collection_;
  const SearchRequest& request_;
  const ClientLimits limits_;
  CellCost cost_;
  int64_t items_ = 0;
  double own_cell_probability_ = 0;
};

// The members of a result that only this scheme has. Private.
void AddCellsJson(const SearchResponse& response, const SearchResult& result, nlohmann::json* json);
// The content of a message, cell by cell. DATA_LOSS, INVALID_ARGUMENT: it is malformed.
absl::StatusOr<nlohmann::json> ExplainCells(const v1::RetrieveCellsRequest& message,
                                            const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELLS_SEARCH_H_

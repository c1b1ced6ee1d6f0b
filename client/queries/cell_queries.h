// Private queries for cells: checks, charges, sending, answers.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_CELL_QUERIES_H_
#define PRIVATEMAIL_CLIENT_QUERIES_CELL_QUERIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queries/query_batch.h"
#include "common/cells/cell_quality.h"
#include "privatemail/cell_client.h"
#include "privatemail/transport.h"

namespace privatemail::client {

struct CellsOutcome : Attempt {
  PreparedCellQuery prepared;
  std::vector<v1::RetrieveCellsResponse> response;
  CellQueryResult result;  // once finished

  int64_t memory() const;
  size_t bytes_down() const;
};

// Whether queries for cells are answered; of daemons that send no cells_status by cells_ready.
bool AreCellsReady(const v1::GetCollectionResponse& collection);

// "none", "not_built", "preparing", "ready", "failed"; "" if the daemon sends none.
std::string CellsStatusName(const v1::GetCollectionResponse& collection);

// The published quality of the collection's cells, of a response with it. FAILED_PRECONDITION,
// UNAVAILABLE: why there is none. DATA_LOSS: it is malformed.
absl::StatusOr<CellQuality> QualityOf(const v1::GetCollectionResponse& collection);

// Sends a request for cells. Reading stops at the first item beyond what the request allows.
absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
    const Transport& transport, const v1::GetCollectionResponse& collection,
    const v1::RetrieveCellsRequest& request);

// FAILED_PRECONDITION: a plan for the parameters of this fingerprint (empty: none) holds no more,
// because the collection has others.
absl::Status CheckPlanned(const std::string& fingerprint,
                          const v1::GetCollectionResponse& collection);

// The label given with a target, if any.
std::optional<int32_t> LabelOf(const NamedTarget& target);

// Queries to one collection. Held by the client; sees targets only while Run runs.
class CellQueries {
 public:
  // Fetches parameters and anchors. with_quality: for ItemsByQuality. transport must outlive it.
  static absl::StatusOr<CellQueries> Fetch(const Transport& transport, QuerySettings settings,
                                           const std::string& collection, bool with_quality);

  const v1::GetCollectionResponse& collection() const { return collection_; }

  // Items to request: as many for each requested cell as the published quality suggests.
  // INVALID_ARGUMENT: it is not known; or the cost.
  absl::StatusOr<int64_t> ItemsByQuality(const CellCost& cost) const;

  // Makes the client; call it before the following. own_anchors: see CellClient.
  // UNAVAILABLE: the cells are being prepared; FAILED_PRECONDITION: that failed. Otherwise the
  // errors of CellClient::Create.
  absl::Status CreateClient(const std::optional<FloatMatrix>& own_anchors = std::nullopt);
  const CellClient& client() const { return *client_; }

  // Charges and sends a query for each target in turn, then reads the answers. Statuses as
  // JointQueries::Run.
  absl::StatusOr<std::vector<CellsOutcome>> Run(const std::vector<NamedTarget>& targets,
                                                const CellQueryOptions& options,
                                                const WarnFunction& warn) const;

 private:
  CellQueries(const Transport& transport, QuerySettings settings)
      : transport_(&transport), settings_(std::move(settings)) {}

  std::vector<std::string> Warnings(const CellQueryOptions& options) const;
  absl::Status Send(CellsOutcome* outcome) const;

  const Transport* transport_;
  QuerySettings settings_;
  v1::GetCollectionResponse collection_;
  std::vector<v1::GetAnchorsResponse> anchors_;
  std::optional<CellClient> client_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_CELL_QUERIES_H_

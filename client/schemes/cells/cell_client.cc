#include "privatemail/cell_client.h"

#include <algorithm>
#include <limits>

#include "client/schemes/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/codec.h"

namespace privatemail::client {

absl::StatusOr<CellClient> CellClient::Create(const v1::GetCollectionResponse& collection,
                                              const std::vector<v1::GetAnchorsResponse>& anchors,
                                              const std::optional<FloatMatrix>& own_anchors) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(anchors, parameters.feature_dim));
  PM_ASSIGN_OR_RETURN(CellScheme scheme,
                      CellScheme::Create(std::move(parameters), joined, own_anchors));
  PM_ASSIGN_OR_RETURN(CellTargets targets,
                      CellTargets::Create(scheme.parameters(), anchors, own_anchors));
  return CellClient(collection.name(), std::move(scheme), std::move(targets));
}

absl::StatusOr<PreparedCellQuery> CellClient::Prepare(const Eigen::RowVectorXf& features,
                                                      const CellQueryOptions& options,
                                                      Ledger& ledger, BitSource& bits,
                                                      std::optional<int32_t> label) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", options.k, 1, kMaxNeighbors));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("items", options.items,
                                         std::max<int64_t>(options.cost.ask, 1),
                                         std::numeric_limits<uint32_t>::max()));
  PM_ASSIGN_OR_RETURN(CellTarget target, targets_.Of(features, options.k, label));
  PM_ASSIGN_OR_RETURN(const CellRelease release,
                      scheme_.Release(features, options.cost, ledger, bits));
  PreparedCellQuery prepared;
  v1::RetrieveCellsRequest& request = prepared.request;
  request.set_collection(name_);
  request.set_fingerprint(Fingerprint(parameters()));
  request.set_partition(static_cast<uint32_t>(options.cost.partition));
  request.mutable_cells()->Assign(release.cells.begin(), release.cells.end());
  request.set_epsilon(options.cost.epsilon);
  request.set_items(static_cast<uint32_t>(options.items));
  request.set_with_payloads(options.with_payloads);
  request.set_embedding_version(target.embedding_version);
  prepared.state = {.target = std::move(target), .guarantee = release.guarantee};
  return prepared;
}

absl::StatusOr<CellQueryResult> CellClient::Finish(
    const PreparedCellQuery& query, const std::vector<v1::RetrieveCellsResponse>& response) const {
  return ReadCellAnswer(parameters(), query.request, query.state.target, response);
}

}  // namespace privatemail::client

#include "privatemail/cell_client.h"

#include <algorithm>
#include <limits>

#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

absl::StatusOr<CellTargetFactory> CellTargetFactory::Create(
    const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& anchors,
    const std::optional<FloatMatrix>& own_anchors, const ClientLimits& limits) {
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, CellQueryMemory(parameters), limits));
  PM_RETURN_IF_ERROR(CheckOwnAnchorsAllowed(parameters, own_anchors.has_value()));
  if (!parameters.SendsCoordinates())
    return CellTargetFactory(parameters.feature_dim, std::nullopt);
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, joined));
  PM_ASSIGN_OR_RETURN(const AnchorCoordinates server, JoinCoordinates(parameters, anchors));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, OwnUnitAnchors(parameters, joined, own_anchors));
  PM_ASSIGN_OR_RETURN(
      OutOfSampleEmbedder embedder,
      OutOfSampleEmbedder::Create(parameters, unit_anchors, joined.labels, server.rows, limits));
  return CellTargetFactory(unit_anchors.cols(), Embedding{.embedder = std::move(embedder),
                                                          .version = server.embedding_version,
                                                          .own_anchors = own_anchors.has_value()});
}

absl::StatusOr<CellTarget> CellTargetFactory::Make(const Eigen::RowVectorXf& features, int64_t k,
                                                   std::optional<int32_t> label) const {
  PM_RETURN_IF_ERROR(CheckColumns("query", feature_dim_, features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  CellTarget target{.point = unit.row(0), .k = k};
  if (!embedding_.has_value()) {
    if (!label.has_value()) return target;
    return absl::InvalidArgumentError(
        "label must not be given unless the collection's cell_code is none: items are ranked by "
        "features");
  }
  target.label = label.has_value() ? *label : embedding_->embedder.GuessLabel(unit.row(0));
  PM_ASSIGN_OR_RETURN(target.point, embedding_->embedder.Embed(unit.row(0), *target.label));
  target.embedding_version = embedding_->version;
  return target;
}

std::optional<ExpectedAlignment> CellTargetFactory::expected_alignment() const {
  if (!embedding_.has_value()) return std::nullopt;
  return embedding_->embedder.expected_alignment();
}

absl::Status CellTargetFactory::CheckAnchorsMatch() const {
  if (!embedding_.has_value()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(CheckAlignment(embedding_->embedder.expected_alignment()));
  if (!embedding_->own_anchors) return absl::OkStatus();
  return CheckPairing(embedding_->embedder.pairing_score());
}

absl::StatusOr<CellClient> CellClient::Create(const v1::GetCollectionResponse& collection,
                                              const std::vector<v1::GetAnchorsResponse>& anchors,
                                              const std::optional<FloatMatrix>& own_anchors,
                                              const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, CellQueryMemory(parameters), limits));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(CellScheme scheme,
                      CellScheme::Create(std::move(parameters), joined, own_anchors));
  PM_ASSIGN_OR_RETURN(CellTargetFactory targets,
                      CellTargetFactory::Create(scheme.parameters(), anchors, own_anchors, limits));
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
  PM_ASSIGN_OR_RETURN(CellTarget target, targets_.Make(features, options.k, label));
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

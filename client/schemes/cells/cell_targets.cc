#include "privatemail/cell_targets.h"

#include "absl/status/status.h"
#include "client/schemes/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::StatusOr<CellTargets> CellTargets::Create(const PublicParameters& parameters,
                                                const std::vector<v1::GetAnchorsResponse>& anchors,
                                                const std::optional<FloatMatrix>& own_anchors) {
  PM_RETURN_IF_ERROR(CheckOwnAnchorsOfUse(parameters, own_anchors.has_value()));
  if (!parameters.SendsCoordinates()) return CellTargets(parameters.feature_dim, std::nullopt);
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(anchors, parameters.feature_dim));
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, joined));
  PM_ASSIGN_OR_RETURN(const AnchorCoordinates server, JoinCoordinates(parameters, anchors));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, OwnUnitAnchors(parameters, joined, own_anchors));
  PM_ASSIGN_OR_RETURN(TargetPlacer placer,
                      TargetPlacer::Create(parameters, unit_anchors, joined.labels, server.rows));
  return CellTargets(unit_anchors.cols(), Placing{.placer = std::move(placer),
                                                  .embedding_version = server.embedding_version});
}

absl::StatusOr<CellTarget> CellTargets::Of(const Eigen::RowVectorXf& features, int64_t k,
                                           std::optional<int32_t> label) const {
  PM_RETURN_IF_ERROR(CheckColumns("query", columns_, features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  CellTarget target{.place = unit.row(0), .k = k};
  if (!placing_.has_value()) {
    if (!label.has_value()) return target;
    return absl::InvalidArgumentError(
        "label must not be given unless the collection's cell_code is none: items are ranked by "
        "features");
  }
  target.label = label.has_value() ? *label : placing_->placer.GuessLabel(unit.row(0));
  PM_ASSIGN_OR_RETURN(target.place, placing_->placer.Place(unit.row(0), *target.label));
  target.embedding_version = placing_->embedding_version;
  return target;
}

std::optional<double> CellTargets::relative_residual() const {
  if (!placing_.has_value()) return std::nullopt;
  return placing_->placer.relative_residual();
}

}  // namespace privatemail::client

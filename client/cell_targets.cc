#include "client/cell_targets.h"

#include "absl/status/status.h"
#include "client/release/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {

absl::StatusOr<CellTargets> CellTargets::Create(
    PublicParameters parameters, const std::vector<v1::GetAnchorsResponse>& anchors) {
  if (!parameters.SendsCoordinates()) return CellTargets(std::move(parameters), std::nullopt);
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(anchors, parameters.feature_dim));
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, joined));
  PM_ASSIGN_OR_RETURN(const AnchorCoordinates server, JoinCoordinates(parameters, anchors));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, UnitRows("anchors", joined.features));
  PM_ASSIGN_OR_RETURN(TargetPlacer placer,
                      TargetPlacer::Create(parameters, unit_anchors, joined.labels, server.rows));
  return CellTargets(std::move(parameters), Placing{.placer = std::move(placer),
                                                    .embedding_version = server.embedding_version});
}

absl::StatusOr<CellTarget> CellTargets::Of(const Eigen::RowVectorXf& features, int64_t k,
                                           std::optional<int32_t> label) const {
  PM_RETURN_IF_ERROR(CheckColumns("query", parameters_.feature_dim, features.size()));
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

}  // namespace privatemail

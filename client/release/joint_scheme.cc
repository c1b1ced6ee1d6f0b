#include "client/release/joint_scheme.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/release/joint_steps.h"
#include "client/release/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

absl::Status CheckLabels(absl::string_view field, const PublicParameters& parameters,
                         const std::vector<int32_t>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (const auto slot = parameters.SlotOf(labels[i]); !slot.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " row ", i, ": ", slot.status().message()));
    }
  }
  return absl::OkStatus();
}

// labels: each of a slot.
absl::StatusOr<std::vector<std::vector<int64_t>>> RowsBySlot(absl::string_view field,
                                                             const PublicParameters& parameters,
                                                             const std::vector<int32_t>& labels) {
  std::vector<std::vector<int64_t>> rows(parameters.slot_labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    rows[static_cast<size_t>(*parameters.SlotOf(labels[i]))].push_back(static_cast<int64_t>(i));
  }
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    if (rows[slot].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " must hold at least one vector of every class, but hold none of ",
                       parameters.ClassName(static_cast<int64_t>(slot))));
    }
  }
  return rows;
}

Matrix ClassMeans(const PublicParameters& parameters, const Matrix& unit_anchors,
                  const std::vector<int32_t>& labels) {
  Matrix means =
      Matrix::Zero(static_cast<Eigen::Index>(parameters.slot_labels.size()), unit_anchors.cols());
  for (Eigen::Index i = 0; i < unit_anchors.rows(); ++i) {
    means.row(*parameters.SlotOf(labels[static_cast<size_t>(i)])) += unit_anchors.row(i);
  }
  means.rowwise().normalize();  // a mean of length zero stays zero: no direction is nearest to it
  return means;
}

}  // namespace

absl::StatusOr<JointSetting> MakeJointSetting(PublicParameters parameters, const Anchors& anchors,
                                              const std::optional<Anchors>& dummies,
                                              std::shared_ptr<const FixedRows> fixed) {
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, anchors));
  PM_RETURN_IF_ERROR(CheckLabels("anchors", parameters, anchors.labels));
  PM_ASSIGN_OR_RETURN(Matrix unit_anchors, UnitRows("anchors", anchors.features));
  PM_ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> of_slot,
                      RowsBySlot("anchors", parameters, anchors.labels));
  std::optional<Matrix> pool;
  if (dummies.has_value()) {
    PM_RETURN_IF_ERROR(CheckColumns("dummies", parameters.feature_dim, dummies->features.cols()));
    if (static_cast<Eigen::Index>(dummies->labels.size()) != dummies->features.rows()) {
      return absl::InvalidArgumentError(absl::StrCat("dummies must have one label a row, but have ",
                                                     dummies->features.rows(), " rows and ",
                                                     dummies->labels.size(), " labels"));
    }
    PM_RETURN_IF_ERROR(CheckLabels("dummies", parameters, dummies->labels));
    PM_ASSIGN_OR_RETURN(pool, UnitRows("dummies", dummies->features));
    PM_ASSIGN_OR_RETURN(of_slot, RowsBySlot("dummies", parameters, dummies->labels));
  }
  std::vector<int64_t> slot_of_anchor;
  for (const int32_t label : anchors.labels) slot_of_anchor.push_back(*parameters.SlotOf(label));
  std::vector<int32_t> labels = parameters.slot_labels;
  labels.insert(labels.end(), anchors.labels.begin(), anchors.labels.end());
  LabelGraph label_graph(labels, parameters.settings.label_graph,
                         parameters.settings.KernelDenominator());
  Matrix class_means = ClassMeans(parameters, unit_anchors, anchors.labels);
  if (fixed == nullptr) {
    fixed = std::make_shared<const FixedRows>(std::move(unit_anchors),
                                              parameters.settings.KernelDenominator());
  }
  return JointSetting{std::move(parameters),    std::move(fixed),       std::move(pool),
                      std::move(of_slot),       std::move(label_graph), std::move(class_means),
                      std::move(slot_of_anchor)};
}

absl::StatusOr<JointScheme> JointScheme::Create(PublicParameters parameters, const Anchors& anchors,
                                                const std::optional<Anchors>& dummies) {
  PM_ASSIGN_OR_RETURN(JointSetting setting,
                      MakeJointSetting(std::move(parameters), anchors, dummies));
  return JointScheme(std::make_shared<const JointSetting>(std::move(setting)));
}

const PublicParameters& JointScheme::parameters() const { return setting_->parameters; }

const LabelGraph& JointScheme::label_graph() const { return setting_->label_graph; }

absl::StatusOr<int32_t> NearestClass(const JointSetting& setting,
                                     const Eigen::RowVectorXf& features) {
  PM_RETURN_IF_ERROR(CheckColumns("query", setting.parameters.feature_dim, features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  Eigen::Index nearest = 0;
  (setting.class_means * unit.transpose()).col(0).maxCoeff(&nearest);
  return setting.parameters.slot_labels[static_cast<size_t>(nearest)];
}

absl::StatusOr<PlacedTarget> Place(const JointSetting& setting, const Target& target) {
  PM_RETURN_IF_ERROR(CheckColumns("query", setting.parameters.feature_dim, target.features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(target.features)));
  const absl::StatusOr<int64_t> slot = setting.parameters.SlotOf(target.label);
  if (!slot.ok()) return absl::InvalidArgumentError(slot.status().message());
  return PlacedTarget{.slot = *slot, .row = unit.row(0)};
}

absl::StatusOr<int32_t> JointScheme::GuessLabel(const Eigen::RowVectorXf& features) const {
  return NearestClass(*setting_, features);
}

RadiusMeaning JointScheme::MeaningOf(double radius) const {
  return MeaningOfRadius(setting_->anchors->points(), setting_->slot_of_anchor, radius);
}

absl::StatusOr<JointRelease> JointScheme::Release(const Target& target, const PrivacyCost& cost,
                                                  Ledger& ledger, BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const PlacedTarget placed, Place(*setting_, target));
  PM_ASSIGN_OR_RETURN(const TargetFreePart part, DrawTargetFreePart(*setting_, cost, bits));
  PM_RETURN_IF_ERROR(ledger.Charge(parameters().collection_uuid, part.guarantee).status());
  absl::StatusOr<std::vector<FloatMatrix>> released =
      ReleaseIterations(*setting_, part, cost, placed.slot, placed.row, bits);
  if (!released.ok()) {
    return absl::Status(released.status().code(),
                        absl::StrCat(released.status().message(),
                                     "; nothing was released, but the ledger was charged"));
  }
  return JointRelease{.rows = std::move(released->back()),
                      .guarantee = part.guarantee,
                      .sensitivity = part.noise.sensitivity,
                      .noise_stddev = part.noise.mechanism->noise_stddev()};
}

}  // namespace privatemail

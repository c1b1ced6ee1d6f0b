#include "client/schemes/joint/joint_scheme.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/schemes/joint/joint_steps.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/request_checks.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/offered_schemes.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {
namespace {

constexpr Eigen::Index kMaxRows = 4000;
constexpr Eigen::Index kBlock = 256;  // rows of one matrix product

std::string Share(int64_t close, int64_t pairs, const char* of) {
  if (pairs == 0) return absl::StrCat("there are no ", of);
  return absl::StrFormat("%.3g %% of %s",
                         100. * static_cast<double>(close) / static_cast<double>(pairs), of);
}

// Noise on the input leaves all other rows exact, and the iteration can be inverted.
absl::Status CheckOwnRowsAreHidden(const JointSetting& setting, const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  const bool own = setting.pool.has_value() || setting.own_anchors;
  if (!own || traits.protects != MechanismTraits::Protects::kInput) return absl::OkStatus();
  return InvalidField(
      setting.own_anchors ? "own_anchors" : "dummies",
      absl::StrCat("does not apply to ", traits.name,
                   ", which adds no noise to their rows and so would publish them"));
}

// DEADLINE_EXCEEDED: a release would take too long. Other errors of the rehearsal are those of its
// alignment, which the caller may accept.
absl::Status CheckRehearsal(const JointSetting& setting) {
  if (setting.limits.max_computing == absl::InfiniteDuration()) return absl::OkStatus();
  const absl::Status status = RehearsalOf(setting).status();
  return absl::IsDeadlineExceeded(status) ? status : absl::OkStatus();
}

const ClassRanker& RankerOf(const JointSetting& setting) {
  std::call_once(setting.ranker->once, [&] {
    setting.ranker->made.emplace(setting.anchors->points(), setting.slot_of_anchor,
                                 setting.slots());
  });
  return *setting.ranker->made;
}

// INVALID_ARGUMENT: places of a mechanism that does not hide the class, or out of range.
absl::Status CheckPlaces(const JointSetting& setting, const Target& target,
                         const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  if (!target.places.empty() && traits.protects != MechanismTraits::Protects::kValue) {
    return InvalidField(
        "places",
        absl::StrCat("does not apply to ", traits.name,
                     ", which does not hide the class: ranked classes would reveal features"));
  }
  for (const ClassPlaces& one : target.places) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("slot of places", one.slot, 0, setting.slots() - 1));
    PM_RETURN_IF_ERROR(CheckIntegerBetween("places", one.places, 1, kMaxNeighbors));
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT: features or label, see JointScheme::Release.
absl::StatusOr<PlacedTarget> PlaceTarget(const JointSetting& setting, const Target& target) {
  PM_RETURN_IF_ERROR(CheckColumns("query", setting.feature_dim(), target.features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(target.features)));
  const absl::StatusOr<int64_t> slot = setting.parameters.SlotOf(target.label);
  if (!slot.ok()) return absl::InvalidArgumentError(slot.status().message());
  return PlacedTarget{.slot = *slot, .row = unit.row(0)};
}

// The rows of the anchors in the space of targets, scaled to length 1.
absl::StatusOr<Matrix> UnitAnchors(const Anchors& anchors, const OwnRows& own) {
  if (!own.anchors.has_value()) return UnitRows("anchors", anchors.features);
  if (own.anchors->rows() == anchors.features.rows()) return UnitRows("own_anchors", *own.anchors);
  return InvalidField("own_anchors",
                      absl::StrCat("must be ", anchors.features.rows(),
                                   " rows, one an anchor, but are ", own.anchors->rows()));
}

// The PairingScore of the anchors' own embedding, without noise and slots, and the server's.
absl::StatusOr<double> ScorePairing(const JointSetting& setting, const Matrix& server_anchors) {
  const ComputingDeadline deadline("embedding own_anchors", setting.limits);
  const EmbeddingSettings& settings = setting.parameters.settings;
  std::vector<int32_t> labels;
  for (const int64_t slot : setting.slot_of_anchor) {
    labels.push_back(setting.parameters.slot_labels[static_cast<size_t>(slot)]);
  }
  const LabelGraph label_graph(labels, settings.label_graph, settings.KernelDenominator());
  PM_ASSIGN_OR_RETURN(const Matrix own,
                      SmlqIterate(PublicStart(setting.parameters, label_graph),
                                  setting.anchors->affinity(), label_graph, settings.alpha,
                                  settings.steps, settings.normalise, deadline.steps()));
  PM_ASSIGN_OR_RETURN(const Similarity map, KabschUmeyama(own, server_anchors));
  return PairingScore(map.Apply(own), server_anchors, setting.slot_of_anchor);
}

}  // namespace

std::string RadiusStats::ToString() const {
  return absl::StrCat("closer than ", FormatExact(radius), ": ",
                      Share(same_class_pairs_within, same_class_pairs, "pairs of one class"), ", ",
                      Share(cross_class_pairs_within, cross_class_pairs, "pairs of two classes"));
}

RadiusStats ComputeRadiusStats(const Matrix& anchors, const std::vector<int64_t>& class_of_anchor,
                               double radius) {
  const Eigen::Index rows = std::min(anchors.rows(), kMaxRows);
  const auto nth = [&](Eigen::Index i) { return i * anchors.rows() / rows; };
  Matrix some(rows, anchors.cols());
  for (Eigen::Index i = 0; i < rows; ++i) some.row(i) = anchors.row(nth(i));
  const auto class_of = [&](Eigen::Index i) {
    return class_of_anchor[static_cast<size_t>(nth(i))];
  };

  RadiusStats stats{.radius = radius};
  for (Eigen::Index first = 0; first < rows; first += kBlock) {
    const Eigen::Index count = std::min(kBlock, rows - first);
    const Matrix products = some.middleRows(first, count) * some.transpose();
    for (Eigen::Index i = first; i < first + count; ++i) {
      for (Eigen::Index j = 0; j < i; ++j) {
        const bool close = 2 - 2 * products(i - first, j) <= radius * radius;
        const bool one_class = class_of(i) == class_of(j);
        ++(one_class ? stats.same_class_pairs : stats.cross_class_pairs);
        if (close) ++(one_class ? stats.same_class_pairs_within : stats.cross_class_pairs_within);
      }
    }
  }
  return stats;
}

absl::StatusOr<JointSetting> MakeJointSetting(PublicParameters parameters, const Anchors& anchors,
                                              const OwnRows& own,
                                              std::shared_ptr<const FixedRows> fixed,
                                              const ClientLimits& limits) {
  const ComputingDeadline deadline("preparing queries", limits);
  PM_RETURN_IF_ERROR(CheckHasClasses(parameters.collection_uuid, parameters));
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, anchors));
  PM_RETURN_IF_ERROR(CheckLabels("anchors", parameters, anchors.labels));
  PM_ASSIGN_OR_RETURN(Matrix unit_anchors, UnitAnchors(anchors, own));
  PM_ASSIGN_OR_RETURN(std::vector<std::vector<int64_t>> of_slot,
                      RowsBySlot("anchors", parameters, anchors.labels));
  std::optional<Matrix> pool;
  if (const std::optional<Anchors>& dummies = own.dummies; dummies.has_value()) {
    PM_RETURN_IF_ERROR(CheckColumns("dummies", unit_anchors.cols(), dummies->features.cols()));
    if (static_cast<Eigen::Index>(dummies->labels.size()) != dummies->features.rows()) {
      return InvalidField(
          "dummies", absl::StrCat("must have one label a row, but have ", dummies->features.rows(),
                                  " rows and ", dummies->labels.size(), " labels"));
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
  if (fixed == nullptr) {
    PM_ASSIGN_OR_RETURN(
        fixed, FixedRows::Create(std::move(unit_anchors), parameters.settings.KernelDenominator(),
                                 deadline.products()));
  }
  return JointSetting{.parameters = std::move(parameters),
                      .anchors = std::move(fixed),
                      .own_anchors = own.anchors.has_value(),
                      .pool = std::move(pool),
                      .of_slot = std::move(of_slot),
                      .label_graph = std::move(label_graph),
                      .slot_of_anchor = std::move(slot_of_anchor),
                      .limits = limits};
}

absl::StatusOr<JointScheme> JointScheme::Create(PublicParameters parameters, const Anchors& anchors,
                                                const OwnRows& own, const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(JointSetting setting, MakeJointSetting(std::move(parameters), anchors, own,
                                                             /*fixed=*/nullptr, limits));
  return JointScheme(std::make_shared<const JointSetting>(std::move(setting)));
}

const PublicParameters& JointScheme::parameters() const { return setting_->parameters; }

const LabelGraph& JointScheme::label_graph() const { return setting_->label_graph; }

absl::StatusOr<std::vector<ClassPlaces>> JointScheme::AllotClasses(
    const Eigen::RowVectorXf& features, int64_t k, int64_t classes) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, kMaxNeighbors));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("classes", classes, 0, setting_->slots()));
  PM_RETURN_IF_ERROR(CheckColumns("query", setting_->feature_dim(), features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  PM_RETURN_IF_ERROR(CheckRanking(setting_->parameters, setting_->feature_dim(), setting_->limits));
  return RankerOf(*setting_).Allot(unit.row(0), k, classes);
}

const ClassRanker& JointScheme::class_ranker() const { return RankerOf(*setting_); }

RadiusStats JointScheme::DescribeRadius(double radius) const {
  return ComputeRadiusStats(setting_->anchors->points(), setting_->slot_of_anchor, radius);
}

const ClientLimits& JointScheme::limits() const { return setting_->limits; }

int64_t JointScheme::columns() const { return setting_->feature_dim(); }

bool JointScheme::has_own_anchors() const { return setting_->own_anchors; }

absl::StatusOr<ExpectedAlignment> JointScheme::ExpectAlignment(const Matrix& server_anchors) const {
  PM_ASSIGN_OR_RETURN(const Matrix* const rehearsal, RehearsalOf(*setting_));
  const ComputingDeadline deadline("aligning the anchors", setting_->limits);
  PM_ASSIGN_OR_RETURN(ExpectedAlignment expected,
                      client::ExpectAlignment(*rehearsal, setting_->slot_of_anchor, server_anchors,
                                              deadline.work()));
  if (setting_->own_anchors) {
    PM_ASSIGN_OR_RETURN(expected.pairing_score, ScorePairing(*setting_, server_anchors));
  }
  return expected;
}

absl::Status JointScheme::CheckCost(const PrivacyCost& cost) const {
  PM_RETURN_IF_ERROR(client::CheckCost(cost));
  return CheckOwnRowsAreHidden(*setting_, cost);
}

absl::StatusOr<JointRelease> JointScheme::Release(const Target& target, const PrivacyCost& cost,
                                                  const ChargeFunction& charge,
                                                  BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const PlacedTarget placed, PlaceTarget(*setting_, target));
  PM_RETURN_IF_ERROR(CheckPlaces(*setting_, target, cost));
  PM_RETURN_IF_ERROR(CheckCost(cost));
  PM_RETURN_IF_ERROR(CheckRehearsal(*setting_));
  const ComputingDeadline deadline("a release", setting_->limits);
  PM_ASSIGN_OR_RETURN(const TargetIndependentPart part,
                      DrawTargetIndependentPart(*setting_, cost, bits));
  PM_RETURN_IF_ERROR(deadline.Check());
  PM_RETURN_IF_ERROR(charge(part.guarantee));
  absl::StatusOr<std::vector<FloatMatrix>> released =
      ReleaseIterations(*setting_, part, cost, placed.slot, placed.row, bits);
  if (!released.ok()) return ChargedWithoutRelease(released.status());
  return JointRelease{.rows = std::move(released->back()),
                      .guarantee = part.guarantee,
                      .sensitivity = part.noise.sensitivity,
                      .noise_stddev = part.noise.mechanism->noise_stddev()};
}

}  // namespace privatemail::client

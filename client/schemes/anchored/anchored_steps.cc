#include "client/schemes/anchored/anchored_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sensitivity/rounding.h"
#include "client/schemes/query_limits.h"
#include "client/schemes/release_noise.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/affinity.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/smlq.h"
#include "privatemail/anchored_scheme.h"

namespace privatemail::client {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr double kDiameter = 2;  // of the unit sphere of features

absl::StatusOr<Matrix> EmbedAnchors(const JointSetting& joint, const ComputingDeadline& deadline) {
  const EmbeddingSettings& settings = joint.parameters.settings;
  std::vector<int32_t> labels;
  for (const int64_t slot : joint.slot_of_anchor) {
    labels.push_back(joint.parameters.slot_labels[static_cast<size_t>(slot)]);
  }
  const LabelGraph graph(labels, settings.label_graph, settings.KernelDenominator());
  PM_ASSIGN_OR_RETURN(
      const Matrix embedded,
      SmlqIterate(PublicStart(joint.parameters, graph), joint.anchors->affinity(), graph,
                  settings.alpha, settings.steps, settings.normalise, deadline.steps()));
  PM_RETURN_IF_ERROR(deadline.Check());
  // Checked before rounding to float, which would give a line a second dimension.
  PM_RETURN_IF_ERROR(KabschUmeyama(embedded, embedded, /*with_scale=*/true).status());
  return Matrix(embedded.cast<float>().cast<double>());
}

// alpha L_Y X_0 at the slots.
Matrix PullOfLabels(const JointSetting& joint, const Matrix& coordinates) {
  Matrix start = Matrix::Zero(joint.rows(), coordinates.cols());
  start.bottomRows(coordinates.rows()) = coordinates;
  return joint.parameters.settings.alpha *
         joint.label_graph.MultiplyLaplacian(start).topRows(joint.slots());
}

absl::Status AddAnchorRows(const ComputingDeadline& deadline, AnchoredSetting* setting) {
  const JointSetting& joint = setting->joint;
  PM_ASSIGN_OR_RETURN(
      const AffinityOperator::Product w,
      joint.anchors->affinity().MultiplyWithDegrees(setting->coordinates, deadline.products()));
  const auto count = static_cast<double>(w.product.rows());
  setting->anchor_rows.resize(w.product.rows(), w.product.cols());
  for (Eigen::Index j = 0; j < w.product.rows(); ++j) {
    const int64_t slot = joint.slot_of_anchor[static_cast<size_t>(j)];
    // Leave-one-out: an anchor has P - 1 neighbours; both sums are scaled up to P.
    const RowVector sum = setting->pull.row(slot) * (count - 1) / count + w.product.row(j);
    setting->anchor_rows.row(j) = .5 * sum / w.degrees[j];
  }
  if (setting->anchor_rows.allFinite()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the anchors' rows overflow: alpha is extreme, or kernel_bandwidth too small");
}

void AddBalls(AnchoredSetting* setting) {
  const std::vector<int64_t>& slot_of_anchor = setting->joint.slot_of_anchor;
  const int64_t slots = setting->joint.slots();
  setting->centres = Matrix::Zero(slots, setting->coordinates.cols());
  Vector count = Vector::Zero(slots);
  for (size_t j = 0; j < slot_of_anchor.size(); ++j) {
    setting->centres.row(slot_of_anchor[j]) +=
        setting->anchor_rows.row(static_cast<Eigen::Index>(j));
    ++count[slot_of_anchor[j]];
  }
  for (Eigen::Index a = 0; a < slots; ++a) setting->centres.row(a) /= count[a];
  setting->radii = Vector::Zero(slots);
  for (size_t j = 0; j < slot_of_anchor.size(); ++j) {
    const int64_t a = slot_of_anchor[j];
    const RowVector from_centre =
        setting->anchor_rows.row(static_cast<Eigen::Index>(j)) - setting->centres.row(a);
    setting->radii[a] = std::max(setting->radii[a], from_centre.norm());
  }
  const AnchoredBounds& bounds = setting->bounds;
  setting->radii = setting->radii.cwiseMin(bounds.range).cwiseMax(bounds.rounding);
}

// Rounding of a row that is projected into its ball and scaled, in units of the row: that of the
// row (anchored_bounds.h: at least six roundings of its length), once more for the difference from
// the centre; then a length, a quotient and products within the ball.
double RowRounding(const AnchoredSetting& setting, Eigen::Index slot) {
  const auto k = static_cast<double>(setting.centres.cols());
  return 2 * setting.bounds.rounding[slot] +
         kUnitRoundoff * (2 * setting.centres.row(slot).norm() + (k + 12) * setting.radii[slot]);
}

// The affinities of ScaledSlotRows for anchors in place of target and dummies, block by block: what
// they take tells before a charge whether a release keeps the deadline.
absl::Status RehearseSlotRows(const AnchoredSetting& setting, const ComputingDeadline& deadline) {
  constexpr Eigen::Index kBlock = 64;
  const JointSetting& joint = setting.joint;
  if (joint.limits.max_computing == absl::InfiniteDuration()) return absl::OkStatus();
  const Matrix& anchors = joint.anchors->points();
  Matrix affinity;
  for (Eigen::Index first = 0; first < joint.slots(); first += kBlock) {
    PM_RETURN_IF_ERROR(deadline.Check());
    const Eigen::Index count = std::min(kBlock, joint.slots() - first);
    affinity.resize(count, anchors.rows());
    AffinityBetween(anchors.middleRows(first, count),
                    joint.anchors->squared_norms().segment(first, count), anchors,
                    joint.anchors->squared_norms(), joint.parameters.settings.KernelDenominator(),
                    &affinity);
  }
  return deadline.Check();
}

absl::Status CheckMechanism(const PrivacyCost& cost, const MechanismTraits& traits) {
  if (!traits.MayBeAnchored()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mechanism must be one of ", AnchoredMechanismNames(),
                     " in the anchored scheme, but is ", traits.name));
  }
  return CheckIntegerBetween("private_iterations", cost.private_iterations, 1, 1);
}

// Projects a row into its slot's ball, relative to the centre.
RowVector ProjectIntoBall(const AnchoredSetting& setting, Eigen::Index slot, const RowVector& row) {
  const RowVector from_centre = row - setting.centres.row(slot);
  const double length = from_centre.norm();
  const double radius = setting.radii[slot];
  return length > radius ? RowVector(from_centre * (radius / length)) : from_centre;
}

// Log-likelihood of `noisy` given `row`, up to a term that is the same for all rows.
double LogLikelihood(const RowVector& row, const RowVector& noisy, Law law,
                     const AnchoredNoise& noise) {
  const double stddev = noise.mechanism->noise_stddev();
  if (law == Law::kLaplace) return -(noisy - row).cwiseAbs().sum() * M_SQRT2 / stddev;
  double logarithm = -(noisy - row).squaredNorm() / (2 * stddev * stddev);
  if (law == Law::kBoundedGaussian) {
    // The truncated law's normaliser: its mass in the box.
    const double unit = M_SQRT2 * stddev;
    for (const double value : row) {
      logarithm -= std::log(std::erf((noise.largest - value) / unit) +
                            std::erf((noise.largest + value) / unit));
    }
  }
  return logarithm;
}

Guarantee MakeGuarantee(const PrivacyCost& cost, const MechanismTraits& traits,
                        Guarantee of_mechanism) {
  Guarantee guarantee = std::move(of_mechanism);
  guarantee.neighbours = DescribeNeighbours(traits, cost.radius);
  guarantee.source =
      absl::StrCat("PRIVACY.md section 5, anchored_bounds.h (",
                   traits.protects == Protects::kValue ? "sensitivity" : "Lipschitz constant",
                   "); ", guarantee.source, " (noise)");
  return guarantee;
}

}  // namespace

absl::StatusOr<AnchoredSetting> MakeAnchoredSetting(JointSetting joint) {
  AnchoredSetting setting{.joint = std::move(joint)};
  const ComputingDeadline deadline("preparing queries", setting.joint.limits);
  PM_ASSIGN_OR_RETURN(setting.coordinates, EmbedAnchors(setting.joint, deadline));
  setting.pull = PullOfLabels(setting.joint, setting.coordinates);
  const absl::StatusOr<AnchoredBounds> bounds = BoundAnchoredRows(
      {.coordinates = setting.coordinates,
       .anchors = setting.joint.anchors->points(),
       .pull = setting.pull,
       .kernel_denominator = setting.joint.parameters.settings.KernelDenominator()});
  // The bounds depend on the collection's parameters only.
  if (!bounds.ok()) return absl::FailedPreconditionError(bounds.status().message());
  setting.bounds = *bounds;
  PM_RETURN_IF_ERROR(AddAnchorRows(deadline, &setting));
  AddBalls(&setting);
  PM_RETURN_IF_ERROR(RehearseSlotRows(setting, deadline));
  return setting;
}

absl::StatusOr<AnchoredNoise> MakeAnchoredNoise(const AnchoredSetting& setting,
                                                const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_RETURN_IF_ERROR(CheckMechanism(cost, traits));
  PM_RETURN_IF_ERROR(CheckRadius(cost.radius, traits));
  const bool hides_class = traits.protects == Protects::kValue;
  const double radius = hides_class ? kDiameter : cost.radius;

  AnchoredNoise noise;
  noise.scale.resize(setting.radii.size());
  for (Eigen::Index a = 0; a < noise.scale.size(); ++a) {
    const double exact =
        std::min({setting.bounds.speed[a] * radius, setting.bounds.range[a], 2 * setting.radii[a]});
    noise.scale[a] = RoundUp(exact + 2 * RowRounding(setting, a));
  }
  const auto k = static_cast<double>(setting.centres.cols());
  const double of_one_row = traits.law == Law::kLaplace ? std::sqrt(k) : 1;
  const double rows = !hides_class ? 1 : traits.law == Law::kLaplace ? 2 : std::sqrt(2);
  noise.sensitivity = RoundUp(rows * of_one_row);

  MechanismParameters made{.kind = cost.mechanism, .epsilon = cost.epsilon, .delta = cost.delta};
  noise.largest = RoundUp((setting.radii.array() / noise.scale.array()).maxCoeff());
  if (hides_class) {
    made.sensitivity = noise.sensitivity;
    if (traits.law == Law::kBoundedGaussian) made.box = {{-noise.largest}, {noise.largest}};
  } else {
    made.ball = {.radius = cost.radius, .p = 2};
    made.lipschitz = RoundUp(noise.sensitivity / cost.radius);
  }
  PM_ASSIGN_OR_RETURN(noise.mechanism, MakeMechanism(made, {.values = setting.centres.size(),
                                                            .largest_value = noise.largest}));
  noise.guarantee = MakeGuarantee(cost, traits, noise.mechanism->guarantee());
  return noise;
}

Matrix ScaledSlotRows(const AnchoredSetting& setting, const AnchoredNoise& noise,
                      const std::vector<int64_t>& dummies, const PlacedTarget& target) {
  const JointSetting& joint = setting.joint;
  const Matrix& anchors = joint.anchors->points();
  const Matrix& pool = joint.pool.has_value() ? *joint.pool : anchors;
  Matrix inputs(joint.slots(), anchors.cols());
  for (Eigen::Index c = 0; c < inputs.rows(); ++c) inputs.row(c) = pool.row(dummies[c]);
  inputs.row(target.slot) = target.row;

  Matrix affinity(inputs.rows(), anchors.rows());
  AffinityBetween(inputs, inputs.rowwise().squaredNorm(), anchors, joint.anchors->squared_norms(),
                  joint.parameters.settings.KernelDenominator(), &affinity);
  const Matrix sums = setting.pull + affinity * setting.coordinates;
  const Vector degrees = affinity.rowwise().sum();
  Matrix rows(sums.rows(), sums.cols());
  for (Eigen::Index c = 0; c < rows.rows(); ++c) {
    rows.row(c) = ProjectIntoBall(setting, c, .5 * sums.row(c) / degrees[c]) / noise.scale[c];
  }
  return rows;
}

FloatMatrix PosteriorMeanCoordinates(const AnchoredSetting& setting, const AnchoredNoise& noise,
                                     Law law, const FloatMatrix& noisy_slots) {
  const int64_t slots = setting.joint.slots();
  const std::vector<int64_t>& slot_of_anchor = setting.joint.slot_of_anchor;
  Vector log_likelihood(setting.coordinates.rows());
  Vector best = Vector::Constant(slots, -std::numeric_limits<double>::infinity());
  for (Eigen::Index j = 0; j < log_likelihood.size(); ++j) {
    const int64_t a = slot_of_anchor[static_cast<size_t>(j)];
    const RowVector row = ProjectIntoBall(setting, a, setting.anchor_rows.row(j)) / noise.scale[a];
    log_likelihood[j] = LogLikelihood(row, noisy_slots.row(a).cast<double>(), law, noise);
    best[a] = std::max(best[a], log_likelihood[j]);
  }
  Matrix sums = Matrix::Zero(slots, setting.coordinates.cols());
  Vector weights = Vector::Zero(slots);
  for (Eigen::Index j = 0; j < log_likelihood.size(); ++j) {
    const int64_t a = slot_of_anchor[static_cast<size_t>(j)];
    const double weight = std::exp(log_likelihood[j] - best[a]);
    sums.row(a) += weight * setting.coordinates.row(j);
    weights[a] += weight;
  }
  FloatMatrix rows(slots + setting.coordinates.rows(), setting.coordinates.cols());
  rows.topRows(slots) = (weights.cwiseInverse().asDiagonal() * sums).cast<float>();
  rows.bottomRows(setting.coordinates.rows()) = setting.coordinates.cast<float>();
  return rows;
}

absl::StatusOr<AnchoredScheme> AnchoredScheme::Create(PublicParameters parameters,
                                                      const Anchors& anchors,
                                                      const std::optional<Anchors>& dummies,
                                                      const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(JointSetting joint, MakeJointSetting(std::move(parameters), anchors, dummies,
                                                           /*fixed=*/nullptr, limits));
  PM_ASSIGN_OR_RETURN(AnchoredSetting setting, MakeAnchoredSetting(std::move(joint)));
  return AnchoredScheme(std::make_shared<const AnchoredSetting>(std::move(setting)));
}

const PublicParameters& AnchoredScheme::parameters() const { return setting_->joint.parameters; }

absl::StatusOr<std::vector<ClassPlaces>> AnchoredScheme::AllotClasses(
    const Eigen::RowVectorXf& features, int64_t k, int64_t classes) const {
  return client::AllotClasses(setting_->joint, features, k, classes);
}

const ClassRanker& AnchoredScheme::class_ranker() const { return RankerOf(setting_->joint); }

RadiusStats AnchoredScheme::DescribeRadius(double radius) const {
  return ComputeRadiusStats(setting_->joint.anchors->points(), setting_->joint.slot_of_anchor,
                            radius);
}

absl::StatusOr<ExpectedAlignment> AnchoredScheme::ExpectAlignment(
    const Matrix& server_anchors) const {
  const std::vector<int64_t>& slot_of_anchor = setting_->joint.slot_of_anchor;
  const ComputingDeadline deadline("aligning the anchors", setting_->joint.limits);
  return client::ExpectAlignment(MeansThenRows(setting_->coordinates, slot_of_anchor),
                                 slot_of_anchor, server_anchors, deadline.work());
}

absl::StatusOr<AnchoredRelease> AnchoredScheme::Release(const Target& target,
                                                        const PrivacyCost& cost, Ledger& ledger,
                                                        BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const PlacedTarget placed, PlaceTarget(setting_->joint, target));
  PM_RETURN_IF_ERROR(CheckPlaces(setting_->joint, target, cost));
  const ComputingDeadline deadline("a release", setting_->joint.limits);
  PM_ASSIGN_OR_RETURN(const AnchoredNoise noise, MakeAnchoredNoise(*setting_, cost));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> dummies, DrawDummies(setting_->joint, bits));
  PM_RETURN_IF_ERROR(deadline.Check());
  PM_RETURN_IF_ERROR(ledger.Charge(parameters().collection_uuid, noise.guarantee).status());
  absl::StatusOr<FloatMatrix> noisy =
      noise.mechanism->Release(ScaledSlotRows(*setting_, noise, dummies, placed), bits);
  if (!noisy.ok()) return ChargedWithoutRelease(noisy.status());
  AnchoredRelease release;
  release.rows = PosteriorMeanCoordinates(*setting_, noise, TraitsOf(cost.mechanism).law, *noisy);
  release.noisy_slots = *std::move(noisy);
  release.guarantee = noise.guarantee;
  release.sensitivity = noise.sensitivity;
  release.noise_stddev = noise.mechanism->noise_stddev();
  return release;
}

}  // namespace privatemail::client

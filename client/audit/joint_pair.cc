#include "client/audit/joint_pair.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kDim = 3;

// A unit row at this angle from one pole.
RowVector AtAngle(double angle) {
  return std::cos(angle) * RowVector::Unit(kDim, 0) + std::sin(angle) * RowVector::Unit(kDim, 1);
}

RowVector Pole(double sign) { return sign * RowVector::Unit(kDim, 0); }

absl::StatusOr<JointSetting> AnchorsAtOnePole(const EmbeddingSettings& settings,
                                              std::vector<int32_t> labels,
                                              const std::optional<Anchors>& dummies) {
  const auto count = static_cast<Eigen::Index>(labels.size());
  const Anchors anchors{Pole(1).replicate(count, 1).cast<float>(), std::move(labels)};
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters("audit", settings, anchors, /*class_names=*/{}, "vectors"));
  return MakeJointSetting(std::move(parameters), anchors, dummies);
}

EmbeddingSettings LabelsOutweighTheRest(Law law, int64_t iterations) {
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  // Over a wide kernel a bound is reached most nearly; noise in a box is the wider, the further the
  // box is from what a target can move, which a narrower kernel makes more of.
  settings.kernel_bandwidth = law == Law::kBoundedGaussian ? 2 : 50;
  // Every iteration multiplies by some ten alpha and adds noise: from the smallest start there is,
  // 40 decades in all stay below the largest float.
  settings.start_stddev = 1e-30;
  settings.alpha = std::min(1e6, .1 * std::pow(10, 40 / static_cast<double>(iterations)));
  return settings;
}

// The rare classes' labels, far from 0, the common one, and next to each other: both are pulled
// alike. Their slots are 1 and 2.
constexpr int32_t kRare[] = {100, 101};

// One anchor of either rare class among `count`.
absl::StatusOr<JointSetting> TwoRareClasses(const EmbeddingSettings& settings, size_t count,
                                            const Anchors& dummies) {
  std::vector<int32_t> labels(count, 0);
  std::copy(std::begin(kRare), std::end(kRare), labels.begin());
  return AnchorsAtOnePole(settings, std::move(labels), dummies);
}

int64_t MostReleases(const MechanismTraits& traits, int64_t iterations) {
  if (traits.law == Law::kBoundedGaussian) return 20'000;  // whose calibration is the longest part
  return std::min<int64_t>(200'000, 1'000'000 / iterations);
}

}  // namespace

absl::StatusOr<JointPair> PairAtThePapersSettings() {
  EmbeddingSettings settings;
  settings.embedding_dim = 8;
  std::vector<int32_t> labels(60, 0);
  std::fill(labels.begin() + 30, labels.end(), 1);
  PM_ASSIGN_OR_RETURN(JointSetting setting,
                      AnchorsAtOnePole(settings, std::move(labels), std::nullopt));
  return JointPair{"both targets opposite to all anchors, at the papers' settings",
                   std::move(setting),
                   {0, Pole(-1)},
                   {1, Pole(-1)},
                   100'000};
}

absl::StatusOr<JointPair> PairThatTheLabelsPull(const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  const bool hides_class = traits.protects == Protects::kValue;
  Anchors dummies{FloatMatrix(3, kDim), {0, kRare[0], kRare[1]}};
  dummies.features << Pole(1).cast<float>(), Pole(hides_class ? -1 : 1).cast<float>(),
      Pole(1).cast<float>();
  // What is lost of a bound in L2 is about one part in the number of anchors.
  PM_ASSIGN_OR_RETURN(
      JointSetting setting,
      TwoRareClasses(LabelsOutweighTheRest(traits.law, cost.private_iterations),
                     traits.law == Law::kGaussian && hides_class ? 60 : 20, dummies));
  const int64_t most_releases = MostReleases(traits, cost.private_iterations);
  if (hides_class) {
    return JointPair{"both slots cross from the anchors' pole, labels outweigh the rest",
                     std::move(setting),
                     {1, Pole(1)},
                     {2, Pole(-1)},
                     most_releases};
  }
  const double arc = 2 * std::asin(cost.radius / 2);
  const double first = (std::numbers::pi - arc) / 2;
  return JointPair{
      absl::StrCat("targets of one class, ", cost.radius, " apart, labels outweigh the rest"),
      std::move(setting),
      {1, AtAngle(first)},
      {1, AtAngle(first + arc)},
      most_releases};
}

}  // namespace privatemail::client::audit

#include "privatemail/anchored_scheme.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/schemes/anchored/anchored_steps.h"
#include "common/base/status_macros.h"

namespace privatemail::client {

absl::StatusOr<AnchoredScheme> AnchoredScheme::Create(PublicParameters parameters,
                                                      const Anchors& anchors,
                                                      const std::optional<Anchors>& dummies) {
  PM_ASSIGN_OR_RETURN(JointSetting joint,
                      MakeJointSetting(std::move(parameters), anchors, dummies));
  PM_ASSIGN_OR_RETURN(AnchoredSetting setting, MakeAnchoredSetting(std::move(joint)));
  return AnchoredScheme(std::make_shared<const AnchoredSetting>(std::move(setting)));
}

const PublicParameters& AnchoredScheme::parameters() const { return setting_->joint.parameters; }

absl::StatusOr<int32_t> AnchoredScheme::GuessLabel(const Eigen::RowVectorXf& features) const {
  return NearestClass(setting_->joint, features);
}

RadiusMeaning AnchoredScheme::MeaningOf(double radius) const {
  return MeaningOfRadius(setting_->joint.anchors->points(), setting_->joint.slot_of_anchor, radius);
}

absl::StatusOr<AnchoredRelease> AnchoredScheme::Release(const Target& target,
                                                        const PrivacyCost& cost, Ledger& ledger,
                                                        BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const PlacedTarget placed, Place(setting_->joint, target));
  PM_ASSIGN_OR_RETURN(const AnchoredNoise noise, AnchoredNoiseOf(*setting_, cost));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> dummies, DrawDummies(setting_->joint, bits));
  PM_RETURN_IF_ERROR(ledger.Charge(parameters().collection_uuid, noise.guarantee).status());
  absl::StatusOr<FloatMatrix> noisy =
      noise.mechanism->Release(ScaledSlotRows(*setting_, noise, dummies, placed), bits);
  if (!noisy.ok()) {
    return absl::Status(noisy.status().code(),
                        absl::StrCat(noisy.status().message(),
                                     "; nothing was released, but the ledger was charged"));
  }
  AnchoredRelease release;
  release.rows = FinishedCoordinates(*setting_, noise, TraitsOf(cost.mechanism).law, *noisy);
  release.noisy_slots = *std::move(noisy);
  release.guarantee = noise.guarantee;
  release.sensitivity = noise.sensitivity;
  release.noise_stddev = noise.mechanism->noise_stddev();
  return release;
}

}  // namespace privatemail::client

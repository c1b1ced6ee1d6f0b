// The steps of an anchored release, apart, so that tests, attacks and experiments can look between
// them. Not installed: a caller of these could let rows without noise out.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/anchored_bounds.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// Public, the same for every release on a collection (and pool of dummies).
struct AnchoredSetting {
  JointSetting joint;  // anchors, classes and dummies
  // Z_P, P x k: of the anchors, computed from them alone; floats, as they travel.
  Matrix coordinates = {};
  // C x k: alpha L_Y X_0 at the slots, X_0 zero for the slots and Z_P after them.
  Matrix pull = {};
  AnchoredBounds bounds = {};
  // P x k: the row that each anchor would have in its class's slot, were it a target: the anchor
  // itself left out, and the sums over the others P / (P - 1) times as large.
  Matrix anchor_rows = {};
  // Rows of slots are drawn into a ball each, before noise: where the rows of the class's anchors
  // lie, or the rounding of a row where they all lie on one point. What lies beyond is told as the
  // ball's nearest point.
  Matrix centres = {};  // C x k: mean of the class's anchor_rows
  Vector radii = {};    // C
};

// Z_P takes settings.steps updates, as many as the server's coordinates, from DeterministicStart,
// and not more until nothing changes: then all columns would be multiples of one direction, which
// no alignment could turn. Errors: AnchoredScheme::Create.
absl::StatusOr<AnchoredSetting> MakeAnchoredSetting(JointSetting joint);

// How one release is made, out of public values alone.
struct AnchoredNoise {
  // C: what a row is divided by before its noise: how far neighbours move it, rounding included.
  // So all slots share one law, and none pays for another's reach.
  Vector scale;
  double sensitivity = 0;  // of all rows together, in these units
  double largest = 0;      // value there can be in a row, in these units: a box ends there
  std::unique_ptr<const Mechanism> mechanism;
  Guarantee guarantee;
};

// Let r be the radius, 2 where neighbours are any two targets. A slot's row, drawn into its ball
// (which brings no two points further apart), moves by at most
//   scale_a = min(speed_a r, range_a, 2 radius_a) + twice its rounding
// when its target moves by r (anchored_bounds.h). Where the class is hidden two slots' rows change,
// the old one's and the new one's, so that scaled rows move by at most sqrt(2) in L2 and 2 sqrt(k)
// in L1; where it is given, one slot's, by 1 and sqrt(k). Errors: AnchoredScheme::Release, for the
// cost; FAILED_PRECONDITION: no grid fits.
absl::StatusOr<AnchoredNoise> MakeAnchoredNoise(const AnchoredSetting& setting,
                                              const PrivacyCost& cost);

// The exact rows of all slots, each with its dummy in it but the target's, C x k: drawn into their
// balls, from the centres, scaled. dummies: as DrawDummies gives them. Private.
Matrix ScaledSlotRows(const AnchoredSetting& setting, const AnchoredNoise& noise,
                      const std::vector<int64_t>& dummies, const PlacedTarget& target);

// What is sent, out of noisy rows (C x k, scaled) and public values alone: for every slot the mean
// of its class's anchors' coordinates, each weighted by how likely it would have had this row,
// prior weights alike: the best guess under squared error of a target that is any of them. Then
// Z_P. (C + P) x k.
FloatMatrix PosteriorMeanCoordinates(const AnchoredSetting& setting, const AnchoredNoise& noise,
                                MechanismTraits::Law law, const FloatMatrix& noisy_slots);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_

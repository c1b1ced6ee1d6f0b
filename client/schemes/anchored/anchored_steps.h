// Internal steps of an anchored release, for tests, attacks and experiments. Not installed: they
// give access to rows without noise.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/mechanism.h"
#include "client/privacy/sensitivity/anchored_bounds.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// The public inputs of all releases on a collection (and pool of dummies). P anchors, C slots,
// k = embedding_dim.
struct AnchoredSetting {
  JointSetting joint;       // anchors, classes and dummies
  Matrix coordinates = {};  // Z_P, P x k: of the anchors, from them alone; floats, as sent
  Matrix pull = {};         // C x k: alpha L_Y X_0 at the slots, X_0 = (0; Z_P)
  AnchoredBounds bounds = {};
  // P x k: the slot row of each anchor if it were the target: the anchor itself left out, the sums
  // over the others scaled by P / (P - 1).
  Matrix anchor_rows = {};
  // Slot rows are projected into a ball each before noise: the smallest around the mean that covers
  // the class's anchor_rows, but at least the rounding of a row.
  Matrix centres = {};  // C x k: mean of the class's anchor_rows
  Vector radii = {};    // C
};

// Z_P takes settings.steps updates from PublicStart, as the server's coordinates do.
// Errors: AnchoredScheme::Create.
absl::StatusOr<AnchoredSetting> MakeAnchoredSetting(JointSetting joint);

// The noise of one release, from public values. Scaled units: a slot's row divided by its scale, so
// that all slots share one law and none pays for the range of another.
struct AnchoredNoise {
  Vector scale;            // C: how far neighbours move a row, rounding included
  double sensitivity = 0;  // of all rows together, scaled
  double largest = 0;      // maximum absolute entry of a row, scaled: the edge of a box
  std::unique_ptr<const Mechanism> mechanism;
  Guarantee guarantee;
};

// With r the radius, or 2 where neighbours are any two targets, a row in its ball (projection is
// 1-Lipschitz) moves by at most (anchored_bounds.h)
//   scale_a = min(speed_a r, range_a, 2 radius_a) + twice its rounding
// The scaled rows together move by at most
//   | class      | rows changed | L2      | L1        |
//   | hidden     | 2            | sqrt(2) | 2 sqrt(k) |
//   | not hidden | 1            | 1       | sqrt(k)   |
// Errors: AnchoredScheme::Release, for the cost; FAILED_PRECONDITION: no grid fits.
absl::StatusOr<AnchoredNoise> MakeAnchoredNoise(const AnchoredSetting& setting,
                                                const PrivacyCost& cost);

// C x k: the exact rows of all slots (the target's, else the dummy's), projected into their balls,
// relative to the centres, scaled. dummies: see DrawDummies. Private.
Matrix ScaledSlotRows(const AnchoredSetting& setting, const AnchoredNoise& noise,
                      const std::vector<int64_t>& dummies, const PlacedTarget& target);

// (C + P) x k, post-processing of noisy rows (C x k, scaled): for every slot the posterior mean of
// its class's anchor coordinates under a uniform prior, which minimises the squared error of a
// target that is one of them; then Z_P.
FloatMatrix PosteriorMeanCoordinates(const AnchoredSetting& setting, const AnchoredNoise& noise,
                                     MechanismTraits::Law law, const FloatMatrix& noisy_slots);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ANCHORED_ANCHORED_STEPS_H_

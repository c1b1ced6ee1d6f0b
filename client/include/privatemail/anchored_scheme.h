// The anchored scheme (PRIVACY.md section 5): the anchors' coordinates go out as they are, computed
// from public rows alone, and noise falls on the slots' rows only.
#ifndef PRIVATEMAIL_ANCHORED_SCHEME_H_
#define PRIVATEMAIL_ANCHORED_SCHEME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "privatemail/joint_scheme.h"
#include "privatemail/radius_meaning.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// What leaves the machine, and what it promises. Safe to publish as a whole.
//
// Hidden: by `gaussian`, `laplace` and `bounded-gaussian` the target, feature and class: every slot
// has its row, with noise of one law on each, and which of them is no dummy is part of what the
// guarantee is over. By `lap-output` and `gauss-output` the features within the radius, and not the
// class, although no row says openly whose it is. Not hidden by any: the collection, the anchors,
// the mechanism and its parameters, that a query was made.
struct AnchoredRelease {
  // (C slots + anchors) x embedding_dim, finished coordinates: slots in the order of slot_labels,
  // each where the noisy row makes an item of its class most likely to lie, then the anchors'
  // public coordinates.
  FloatMatrix rows;
  // C x embedding_dim: what the noise fell on, with it. `rows` are computed from this and public
  // values alone. In units in which no neighbour of the target (within the radius, where there is
  // one) moves the row of its slot by more than 1.
  FloatMatrix noisy_slots;
  Guarantee guarantee;
  double sensitivity = 0;   // how far neighbours can move all rows, before noise: L1 or L2
  double noise_stddev = 0;  // in every entry; of the untruncated law where values are in a box
};

struct AnchoredSetting;

// The public side of a collection, prepared for any number of releases. Immutable and thread-safe.
class AnchoredScheme {
 public:
  // Arguments and errors as JointScheme::Create. FAILED_PRECONDITION also: no bound can be proven
  // for these parameters, or the anchors' coordinates, computed from them alone, vanish, overflow
  // or lie on a line, so that no server could align them.
  static absl::StatusOr<AnchoredScheme> Create(
      PublicParameters parameters, const Anchors& anchors,
      const std::optional<Anchors>& dummies = std::nullopt);

  const PublicParameters& parameters() const;

  // As JointScheme's.
  absl::StatusOr<int32_t> GuessLabel(const Eigen::RowVectorXf& features) const;

  // What a radius means here: how many pairs of anchors are within it.
  RadiusMeaning MeaningOf(double radius) const;

  // One release: the noise, from public values; one dummy for every slot, drawn without regard to
  // the target; the charge, durable before anything is sampled that hides the target; the slots'
  // rows with their noise; what follows from these alone. INVALID_ARGUMENT: features or label, a
  // cost out of range, private_iterations other than 1, or a mechanism that is none of those that
  // AnchoredRelease names: noise on the input would leave the dummies' rows without any, and the
  // printed sensitivities are of the joint release. Otherwise as JointScheme::Release.
  absl::StatusOr<AnchoredRelease> Release(const Target& target, const PrivacyCost& cost,
                                          Ledger& ledger, BitSource& bits) const;

 private:
  explicit AnchoredScheme(std::shared_ptr<const AnchoredSetting> setting)
      : setting_(std::move(setting)) {}

  std::shared_ptr<const AnchoredSetting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_ANCHORED_SCHEME_H_

// The joint scheme of the second paper (algorithm 1, PRIVACY.md sections 1 and 3): one target
// hidden in its class's slot among dummies, embedded together with the public anchors by one
// private iteration.
#ifndef PRIVATEMAIL_JOINT_SCHEME_H_
#define PRIVATEMAIL_JOINT_SCHEME_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "privatemail/mechanism_kind.h"
#include "privatemail/radius_meaning.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// What a searcher keeps secret. Never leaves the client.
struct Target {
  Eigen::RowVectorXf features;  // feature_dim finite values, not all zero
  // One of the collection's slot labels. The mechanisms of Inference Privacy do not hide it: then
  // it must not be computed from the features (GuessLabel), or it tells what they hide.
  int32_t label = 0;
};

// What one release may cost. No number has a default: what the mechanism needs and is not set is
// refused, and so is what it has no use for.
struct PrivacyCost {
  double epsilon = std::numeric_limits<double>::quiet_NaN();
  // Of the Gaussian laws, and of strong composition over several iterations of a pure law; not
  // charged where their plain sum serves better.
  double delta = std::numeric_limits<double>::quiet_NaN();
  MechanismKind mechanism = MechanismKind::kGaussian;
  // Inference Privacy only: targets whose unit features are at most this far apart, up to 2.
  double radius = std::numeric_limits<double>::quiet_NaN();
  int64_t private_iterations = 1;  // noise after each; the first paper's experiments have 2
};

// What leaves the machine, and what it promises. Safe to publish as a whole.
struct JointRelease {
  // (C slots + anchors) x embedding_dim: slot rows in the order of slot_labels, then the anchors.
  FloatMatrix rows;
  Guarantee guarantee;
  // How far neighbours can move what the first noise falls on, L1 or L2 as the mechanism needs: the
  // iterate without noise, or the target's unit features for noise on the input, where this is the
  // radius. Depends on public values and the start alone.
  double sensitivity = 0;
  // Of the first noise, in every entry of the iterate, or in every coordinate of the target's unit
  // features for noise on the input. Of the untruncated law where values are kept in a box.
  double noise_stddev = 0;
};

struct JointSetting;

// The public side of a collection, prepared for any number of releases. Immutable and thread-safe.
class JointScheme {
 public:
  // anchors must be those that the parameters were published with. `dummies` is a pool of the
  // client's own in the shape of anchors; without one, dummies are drawn among the anchors of each
  // class. INVALID_ARGUMENT: shapes differ, a row is zero or not finite, a label of an anchor or of
  // the pool is none of the collection's, or a class has no dummy. DATA_LOSS: the anchors do not
  // have the published digest.
  static absl::StatusOr<JointScheme> Create(PublicParameters parameters, const Anchors& anchors,
                                            const std::optional<Anchors>& dummies = std::nullopt);

  const PublicParameters& parameters() const;
  const LabelGraph& label_graph() const;  // over the slots, then the anchors; for post-processing

  // Label of the class whose anchors' mean direction is nearest to the features, computed here and
  // told to nobody. INVALID_ARGUMENT: wrong dimension, zero or not finite.
  absl::StatusOr<int32_t> GuessLabel(const Eigen::RowVectorXf& features) const;

  // What a radius means here: how many pairs of anchors are within it.
  RadiusMeaning MeaningOf(double radius) const;

  // One release, in this order: start and one dummy for every slot, drawn without regard to the
  // target; the bound; the charge, durable before anything is sampled that hides the target; the
  // private iteration; the noise. Spends (epsilon, delta) of the ledger's budget for this
  // collection; nothing is spent when a check fails first. INVALID_ARGUMENT: features or label as
  // above, epsilon or delta out of range. FAILED_PRECONDITION: no bound can be proven for these
  // parameters, or no budget is granted. RESOURCE_EXHAUSTED: the budget does not suffice.
  // UNAVAILABLE: no bits, or no durable charge.
  absl::StatusOr<JointRelease> Release(const Target& target, const PrivacyCost& cost,
                                       Ledger& ledger, BitSource& bits) const;

 private:
  explicit JointScheme(std::shared_ptr<const JointSetting> setting)
      : setting_(std::move(setting)) {}

  std::shared_ptr<const JointSetting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_JOINT_SCHEME_H_

// The joint scheme of the second paper (algorithm 1, PRIVACY.md sections 1 and 3): one noisy
// iteration over the target in its class's slot, dummies in the other slots, and the anchors.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SCHEME_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SCHEME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/class_ranker.h"
#include "client/schemes/expected_alignment.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/client_limits.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "privatemail/mechanism_kind.h"
#include "privatemail/search_result.h"

namespace privatemail::client {

// A private query. Never leaves the client.
struct Target {
  Eigen::RowVectorXf features;  // finite, not all zero; as many values as an anchor has columns
  // One of the collection's slot labels. Mechanisms of Inference Privacy do not hide it: a label
  // that is computed from the features (AllotClasses) then reveals part of them, and places are
  // refused.
  int32_t label = 0;
  // The classes whose matches are read from the answer; empty: all k of `label`. The server sends
  // those of every class anyway, so this is neither sent nor charged.
  std::vector<ClassPlaces> places = {};
};

// The privacy cost of one release. Numbers have no default. Refused: a missing parameter that the
// mechanism needs, a given one that it does not use.
struct PrivacyCost {
  double epsilon = 0;  // 0 is refused
  // For the Gaussian laws, and for strong composition over several iterations of a pure law; not
  // charged if basic composition is cheaper.
  std::optional<double> delta = std::nullopt;
  MechanismKind mechanism = MechanismKind::kGaussian;
  // Inference Privacy only: neighbours are unit features at most this far apart, in (0, 2].
  std::optional<double> radius = std::nullopt;
  int64_t private_iterations = 1;  // each is followed by noise; 2 in the first paper's experiments
};

// The output of a release: safe to publish as a whole.
struct JointRelease {
  // (C slots + anchors) x embedding_dim: slot rows in the order of slot_labels, then the anchors.
  FloatMatrix rows;
  Guarantee guarantee;
  // L1 or L2 sensitivity, as the mechanism needs, of the first iterate without noise; the radius
  // where noise is on the input. Depends on public values and the start alone.
  double sensitivity = 0;
  // The deviation of the first noise, per entry of the iterate, or per coordinate of the target's
  // unit features where noise is on the input; of the untruncated law where values are in a box.
  double noise_stddev = 0;
};

// anchors: P x d, unit rows; class_of_anchor: P. Of more than 4,000 anchors, 4,000 evenly spaced
// ones are compared. O(min(P, 4,000)^2 d) time.
RadiusStats ComputeRadiusStats(const Matrix& anchors, const std::vector<int64_t>& class_of_anchor,
                               double radius);

// Public rows of the client's own in place of the collection's. Guarantees are for the target
// alone.
struct OwnRows {
  // A pool of dummies with the columns of the anchors; by default dummies are drawn from the
  // anchors of each class.
  std::optional<Anchors> dummies = std::nullopt;
  // P x d': features of the collection's anchors, in their order, by the client's own model, which
  // the server does not need. Targets and dummies are then features by that model.
  std::optional<FloatMatrix> anchors = std::nullopt;
};

struct JointSetting;

// The public side of a collection, prepared for any number of releases. Immutable, thread-safe.
// Held by the client; sees a target only while AllotClasses or Release runs.
class JointScheme {
 public:
  // anchors: published with the parameters.
  // INVALID_ARGUMENT: a row is zero or not finite; a label of an anchor or dummy is
  //   none of the collection's; a class has no dummy; own anchors are not one row an anchor.
  // FAILED_PRECONDITION: the collection has no classes.
  // DATA_LOSS: the anchors do not have the published shape or digest.
  // DEADLINE_EXCEEDED: affinities of the anchors take longer than limits.max_computing.
  static absl::StatusOr<JointScheme> Create(PublicParameters parameters, const Anchors& anchors,
                                            const OwnRows& own = {},
                                            const ClientLimits& limits = ClientLimits::None());

  const PublicParameters& parameters() const;
  const ClientLimits& limits() const;
  bool has_own_anchors() const;
  int64_t columns() const;                // of targets: of the anchors that are used
  const LabelGraph& label_graph() const;  // over the slots, then the anchors; for post-processing

  // For a target without a label: the classes that fit best by ClassRanker::Allot, most probable
  // first; `classes` 0 chooses their number. Computed locally.
  // INVALID_ARGUMENT: k outside [1, kMaxNeighbors], classes outside [0, C], or features of a wrong
  //   dimension, zero or not finite.
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED: fitting the ranker would exceed limits().
  absl::StatusOr<std::vector<ClassPlaces>> AllotClasses(const Eigen::RowVectorXf& features,
                                                        int64_t k, int64_t classes) const;
  const ClassRanker& class_ranker() const;  // fitted at its first use

  RadiusStats DescribeRadius(double radius) const;

  // The alignment of a release without noise that has a dummy in every slot, after all iterations.
  // server_anchors: P x embedding_dim. Errors of PostProcess and KabschUmeyama. Cost: a release,
  // once; with own anchors also an embedding of them, for the pairing score.
  // DEADLINE_EXCEEDED: it takes longer than limits().max_computing.
  absl::StatusOr<ExpectedAlignment> ExpectAlignment(const Matrix& server_anchors) const;

  // INVALID_ARGUMENT: a part of the cost that no release takes: out of range, missing, not used by
  // the mechanism, or one that does not hide own rows.
  absl::Status CheckCost(const PrivacyCost& cost) const;

  // One release, in this order:
  //   1. start and one dummy per slot, drawn independently of the target;
  //   2. the sensitivity bound;
  //   3. the ledger's charge, durable before any noise is sampled; nothing is charged if 1 or 2
  //      fail;
  //   4. the private iterations with their noise.
  // INVALID_ARGUMENT: features, label, epsilon or delta; places out of range, or with a mechanism
  //   that does not hide the class; rows of the client's own with noise on the input, which would
  //   publish them.
  // FAILED_PRECONDITION: no bound is proven for these parameters, or no budget is granted.
  // RESOURCE_EXHAUSTED: the budget does not suffice.
  // UNAVAILABLE: no random bits, or the charge could not be made durable.
  // DEADLINE_EXCEEDED, before the charge: a release without noise and target, computed once, or the
  //   sensitivity bound takes longer than limits().max_computing. After the charge no time is
  //   checked: what is released never depends on how long computing with the target took.
  absl::StatusOr<JointRelease> Release(const Target& target, const PrivacyCost& cost,
                                       const ChargeFunction& charge, BitSource& bits) const;

 private:
  explicit JointScheme(std::shared_ptr<const JointSetting> setting)
      : setting_(std::move(setting)) {}

  std::shared_ptr<const JointSetting> setting_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SCHEME_H_

// Attacks on releases of a scene, for the leakage report of the evaluation.
#ifndef PRIVATEMAIL_CLIENT_SIMULATION_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_SIMULATION_ATTACKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/schemes/joint/joint_steps.h"
#include "client/simulation/trial.h"

namespace privatemail::client::simulation {

// One query of every target of a scene, with noise for the cost or without any.
struct AttackedReleases {
  std::optional<PrivacyCost> cost;
  std::string part;  // seeds the draws
};

// For every target 1 where the attacker was right, else 0. Attackers by name:
//
// - likelihood, likelihood-of-class: knows everything but which of two targets it was, the real one
//   or an item of the gallery of another class or of the same, and compares likelihoods: the
//   guarantee's own terms.
// - dummies: knows every dummy and the start, and names the slot farthest from what its dummy would
//   have given.
// - label: sees what the server sees and names the slot farthest from the anchors of its class in
//   units of their spread. A release that vanishes under post-processing names none.
// - label-without-slots: the target's row stands alone under its own label; names the most frequent
//   class of the answer.
// - cell: sees the one cell that was requested, of as many as there are classes, and names the
//   likeliest class for equal class frequencies, with the anchors as queries.
// - inversion: knows the start and the slot: ridge regression from the slot's row to features,
//   fitted on the anchors, tells the target from another item of its class.
//
// INVALID_ARGUMENT: no such name. FAILED_PRECONDITION: too few classes or items.
absl::StatusOr<std::vector<double>> Attack(absl::string_view name, const Scene& scene,
                                           const AttackedReleases& releases);

enum class DecoyClass { kSame, kOther };

// A row of the gallery of the target's class, or of any other, drawn uniformly by `seed`.
// FAILED_PRECONDITION: there is none.
absl::StatusOr<int64_t> DrawDecoy(const LabelledRows& gallery, int32_t label, DecoyClass of,
                                  uint64_t seed);

// The attacks on one collection whose dummies are drawn among the anchors, which must outlive it.
// Start before RowsOf. Not thread-safe. Uses public values, and a start that the attacker is given.
class RowPrediction {
 public:
  explicit RowPrediction(const JointSetting& joint);

  // Row i: the row of `slot` in an iteration without noise from `start`, were anchor i in it. The
  // dummies of the other slots, which are not known, are taken at the mean affinity of their
  // class. anchors x embedding_dim; O(p^2 k) time, of which Start does the most once.
  Matrix RowsOf(int64_t slot) const;
  void Start(const Matrix& start);  // (slots + anchors) x embedding_dim

 private:
  const JointSetting& joint_;
  Matrix among_anchors_;  // p x p affinities, an anchor's to a copy of itself 1
  Matrix to_classes_;     // p x C: mean affinity to the candidates of each class
  Matrix start_;
  Matrix pull_of_labels_;  // alpha L_Y start
  Matrix sums_;            // p x k: of start over all rows but one's own slot's, weighted
  Vector degrees_;         // p: the weights, all slots' included
};

}  // namespace privatemail::client::simulation

#endif  // PRIVATEMAIL_CLIENT_SIMULATION_ATTACKS_H_

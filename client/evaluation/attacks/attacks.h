// The leakage report: attackers with names, what they win over guessing, and what the guarantee
// allows anybody to win.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ATTACKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/runner.h"
#include "client/evaluation/scene.h"
#include "client/schemes/joint/joint_steps.h"

namespace privatemail::client {

// One attack on releases: of a scheme with proven Gaussian noise, or of cells.
struct LeakageAttack {
  // The guarantee's bound on an attacker's success.
  enum class Bound {
    kNone,         // no guarantee says anything
    kGaussian,     // two targets that are equally likely, by the law of Gaussian noise
    kApproximate,  // a class, by (epsilon, delta) over any two targets
    kPure,         // a class, by epsilon alone: delta is 0, whatever the study's
  };

  std::string id;     // letters, digits and '-'
  std::string title;  // who does what
  std::string given;  // a sentence: what the attacker knows
  int64_t choices;    // among so many
  Bound bound;
  // Of every target of a scene, 1 where the attacker was right and 0 where not.
  std::function<absl::StatusOr<std::vector<double>>(
      const Scene& scene, const std::optional<PrivacyCost>& cost, const std::string& part)>
      attack;
  bool names_class = false;  // among the classes, which need not be equally frequent
};

enum class DecoyClass { kSame, kOther };

// A row of the gallery of the target's class, or of any other, drawn uniformly. There must be one.
int64_t DrawDecoy(const LabelledRows& gallery, int32_t label, DecoyClass of, uint64_t seed);

// Knows everything but which of two targets it was, the real one or an item of the gallery of
// another class or of the same, and compares likelihoods: what the guarantee is about.
LeakageAttack LikelihoodAttack(DecoyClass decoys);

// Knows every dummy and the start, and names the slot farthest from what its dummy would have
// given.
LeakageAttack DummiesAttack(int64_t classes);

// The same on the anchored scheme: knows every dummy, and the noisy rows of the slots, out of which
// all that is sent is computed. Not measured where a scene has no anchored setting.
LeakageAttack AnchoredDummiesAttack(int64_t classes);

// Sees what the server sees and names the slot farthest from the anchors of its class in units of
// their spread; without slots, the most frequent class of the answer.
LeakageAttack LabelAttack(int64_t classes, bool slots);

// Sees the one cell that was requested, of as many as there are classes, and names the likeliest
// class for equal class frequencies, with the anchors as queries. Without a cost the own cell is
// requested.
LeakageAttack CellAttack(int64_t classes);

// Knows the start and the slot: ridge regression from the slot's row to features, fitted on the
// anchors, tells the target from another item of its class.
LeakageAttack InversionAttack();

// One figure per attack: the share of right answers against epsilon with its 95 % Clopper-Pearson
// interval, a guess, the guarantee's bound, and releases without noise. A guarantee is reported as
// broken at a risk of 1e-6, shared out over all bounded attacks and epsilons.
Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage);

Experiment MakeAttacksExperiment(std::shared_ptr<Stage> stage,
                                 const std::vector<LeakageAttack>& attacks);

// Of one collection whose dummies are drawn among the anchors, which must outlive it. Start before
// RowsOf. Not thread-safe. Uses public values, and a start that the attacker is given.
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

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_ATTACKS_H_

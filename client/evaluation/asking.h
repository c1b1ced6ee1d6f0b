// Queries of all targets of a scene, of the joint, anchored and cells schemes, and their scores.
//
// Holds the features of targets, and draws with seeded bits: see scene.h.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ASKING_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ASKING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/metrics.h"
#include "client/evaluation/runner.h"
#include "client/evaluation/scene.h"
#include "privatemail/bit_source.h"
#include "privatemail/joint_scheme.h"

namespace privatemail::client {

// How a target asks.
struct Asking {
  enum class Scheme { kJoint, kAnchored };  // kAnchored: with a cost and with slots only
  enum class Feature { kOwn, kRandom };     // kRandom: a direction drawn uniformly for every target
  enum class Label { kOwn, kWrong };  // kWrong: another class, drawn uniformly for every target

  std::optional<PrivacyCost> cost = std::nullopt;  // none: the iteration goes out without noise
  Feature feature = Feature::kOwn;
  Label label = Label::kOwn;
  // false: only the target's row, under its own label, as in the authors' code: the class is not
  // hidden.
  bool slots = true;
  Scheme scheme = Scheme::kJoint;
};

// One value for every target. What the service would refuse, since a release cannot be aligned or
// vanishes under post-processing, scores 0 and is counted.
struct Answers {
  std::vector<double> class_share;
  std::vector<double> hit;
  std::vector<double> fidelity;
  double mean_residual = 0;  // of the anchors under the alignment, over what was answered
  int64_t unanswered = 0;
  bool built = true;  // false: the server refused to build, so that nothing was released

  void Add(const Scores& scores);
};
// Lists of these names; `not_built` is there where nothing was.
JobResult ToResult(const Answers& answers);

// Queries of all targets of the scene's trial, scored against their true classes. Randomness is
// seeded by (split, target) only: a condition has the same score in every figure. Errors: those of
// a release whose cost is not valid.
absl::StatusOr<Answers> AskAll(const Scene& scene, const Asking& asking);

// AskAll on another scene with these settings; `built` is false where the server refuses to build.
// FAILED_PRECONDITION: settings that Validate refuses.
absl::StatusOr<Answers> BuildAndAskAll(const std::shared_ptr<const Trial>& trial,
                                       const EmbeddingSettings& settings, const Asking& asking);

// The rows of the gallery that come back for each of them; none where nothing does.
absl::StatusOr<std::vector<std::vector<int64_t>>> FoundBy(const Scene& scene, const Asking& asking);

// One release of target `target` as JointScheme::Release makes it, but for ledger and bits; without
// a cost the iteration without noise. unit_features: what the target holds. Slot: its row.
struct Released {
  FloatMatrix rows;  // (slots + anchors) x embedding_dim
  // Known to attackers although it stays with the searcher: the guarantee holds against them, too.
  TargetIndependentPart known;
  double noise_stddev = 0;
};
absl::StatusOr<Released> ReleaseOf(const JointSetting& joint,
                                   const std::optional<PrivacyCost>& cost, int64_t slot,
                                   const RowVector& unit_features, BitSource& bits);

// One anchored release of a target as AnchoredScheme::Release makes it, but for ledger and bits,
// before it is finished; without a cost its rows without noise.
struct ReleasedSlots {
  FloatMatrix rows;              // slots x embedding_dim, scaled
  std::vector<int64_t> dummies;  // known to attackers as above
  AnchoredNoise noise;           // without a cost its scale alone means anything
};
absl::StatusOr<ReleasedSlots> ReleaseAnchored(const AnchoredSetting& setting,
                                              const std::optional<PrivacyCost>& cost,
                                              const PlacedTarget& target, BitSource& bits);

// The rows of a joint release before noise, the target in `slot`.
Matrix ExactRows(const JointSetting& joint, const TargetIndependentPart& part, int64_t slot,
                 const RowVector& unit_features);

// Scores of rows in a common space: for each target the k nearest of the gallery. What is not
// finite has no neighbours: such a target is not answered, and none is by such a gallery.
Answers ScoreRows(const Trial& trial, const Matrix& gallery, const Matrix& targets);

// Expected scores of an answer that is drawn blindly.
Answers ScoreChance(const Trial& trial);

// How cells are asked for: one cell, drawn to the nearest, of which `length` items answer.
struct CellPlan {
  int64_t cells = 0;             // K
  int64_t length = 0;            // items that answer at most
  double expected_fidelity = 0;  // @k, of the nearest 64 at most; estimated without targets
};

// Items that answer for a cell, if they are to be a share of `items`: all k that are asked for can
// come back.
int64_t ListLength(double share, int64_t k, int64_t items);

// Immutable but for what it keeps; thread-safe. Equal trials give equal results.
class CellTrial {
 public:
  explicit CellTrial(std::shared_ptr<const Trial> trial);

  // ListLength of this trial's items.
  int64_t LengthOf(double share) const;

  // The plan of highest expected fidelity at this epsilon when `share` of the gallery answers, from
  // gallery items alone (three quarters known queries, the others held out).
  // INVALID_ARGUMENT: epsilon. FAILED_PRECONDITION: too few rows for any plan.
  absl::StatusOr<CellPlan> PlanFor(double epsilon, double share) const;

  // One query for every target, ranked by features. `part` seeds the choices. INVALID_ARGUMENT
  // naming what is out of range in the plan; FAILED_PRECONDITION: fewer than two cells.
  absl::StatusOr<Answers> AskAll(const CellPlan& plan, double epsilon,
                                 const std::string& part) const;

 private:
  struct Cells;
  // Made of all items as known queries, or without those that are held back to plan with.
  Cells MakeCells(const CellPlan& plan, double epsilon, bool all) const;
  std::shared_ptr<const FloatMatrix> Centroids(int64_t count) const;
  absl::StatusOr<double> ExpectedFidelity(const CellPlan& plan, double epsilon) const;

  std::shared_ptr<const Trial> trial_;
  std::shared_ptr<const ItemNeighbors> neighbors_;
  mutable MadeOnce<int64_t, FloatMatrix> centroids_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ASKING_H_

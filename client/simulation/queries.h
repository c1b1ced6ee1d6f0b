// Queries of all targets of a scene by the joint and cells schemes.
//
// Holds the features of targets, and draws with seeded bits: see trial.h.
#ifndef PRIVATEMAIL_CLIENT_SIMULATION_QUERIES_H_
#define PRIVATEMAIL_CLIENT_SIMULATION_QUERIES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/joint/joint_scheme.h"
#include "client/simulation/trial.h"

namespace privatemail::client::simulation {

struct QueryConfig {
  enum class Feature { kOwn, kRandom };  // kRandom: a direction drawn uniformly for every target
  enum class Label { kOwn, kWrong };     // kWrong: another class, drawn uniformly

  std::optional<PrivacyCost> cost = std::nullopt;  // none: the iteration goes out without noise
  Feature feature = Feature::kOwn;
  Label label = Label::kOwn;
  // false: only the target's row, under its own label, as in the authors' code: the class is not
  // hidden.
  bool slots = true;
};

struct Answers {
  std::vector<std::vector<int64_t>> rows;  // of the gallery, for every target; empty: no answer
  double mean_residual = 0;                // of the anchors under the alignment, of those answered
};

// Randomness is seeded by (trial, target) only. A release that the service would refuse, since it
// cannot be aligned or vanishes under post-processing, has no answer. Errors: those of a release
// whose cost is not valid.
absl::StatusOr<Answers> QueryAll(const Scene& scene, const QueryConfig& config);

// All rows in one embedding, targets under their labels: what the papers compare with.
struct EmbeddedTogether {
  Matrix gallery;
  Matrix targets;
};
absl::StatusOr<EmbeddedTogether> EmbedTogether(const Scene& scene);

// The objective after each iteration of the server from one start: `as_defined` of the iterate
// itself, `scaled` of the iterate at Frobenius norm sqrt(n), divided by n. The iteration is linear,
// so scaling it on the way changes its size alone. Both end before the first that is not finite.
struct Objective {
  std::vector<double> as_defined;
  std::vector<double> scaled;
};
absl::StatusOr<Objective> ServerObjective(const Scene& scene, int iterations);

// One release of a target as JointScheme::Release makes it, but for ledger and bits; without a cost
// the iteration without noise. unit_features: what the target holds. slot: its row.
struct Released {
  FloatMatrix rows;  // (slots + anchors) x embedding_dim
  // Known to attackers although it stays with the searcher: the guarantee holds against them, too.
  TargetIndependentPart known;
  double noise_stddev = 0;
};
absl::StatusOr<Released> Release(const JointSetting& joint, const std::optional<PrivacyCost>& cost,
                                 int64_t slot, const RowVector& unit_features, BitSource& bits);

// The rows of a joint release before noise, the target in `slot`.
Matrix ExactRows(const JointSetting& joint, const TargetIndependentPart& part, int64_t slot,
                 const RowVector& unit_features);

// A joint release after post-processing, and as the server aligns it.
struct Alignment {
  Matrix anchors, slots;
  Matrix aligned_anchors = {}, aligned_slots = {};
  int64_t slot = 0;  // the target's
  double residual = 0;
};
// FAILED_PRECONDITION: the server could not align it.
absl::StatusOr<Alignment> AlignRelease(const Scene& scene, int64_t target, const PrivacyCost& cost,
                                       const std::string& part);

// How cells are queried: one cell, drawn to the nearest, of which `length` items answer.
struct CellPlan {
  int64_t cells = 0;             // K
  int64_t length = 0;            // items that answer at most
  double expected_fidelity = 0;  // @k, of the nearest 64 at most; estimated without targets
};

// Immutable but for its caches; thread-safe. Equal trials give equal results.
class CellTrial {
 public:
  explicit CellTrial(const Trial& trial);  // must outlive it

  // The plan of highest expected fidelity at this epsilon when `share` of the gallery answers, from
  // gallery items alone (three quarters known queries, the others held out).
  // INVALID_ARGUMENT: epsilon. FAILED_PRECONDITION: too few rows for any plan.
  absl::StatusOr<CellPlan> PlanFor(double epsilon, double share) const;

  // For every target the rows that the client ranks first, at most k. `part` seeds the choices.
  // INVALID_ARGUMENT naming what is out of range in the plan; FAILED_PRECONDITION: fewer than two
  // cells.
  absl::StatusOr<std::vector<std::vector<int64_t>>> QueryAll(const CellPlan& plan, double epsilon,
                                                             const std::string& part) const;

 private:
  struct Cells;
  // Made of all items as known queries, or without those that are held back to plan with.
  Cells MakeCells(const CellPlan& plan, double epsilon, bool all) const;
  std::shared_ptr<const FloatMatrix> Centroids(int64_t count) const;
  absl::StatusOr<double> ExpectedFidelity(const CellPlan& plan, double epsilon) const;

  const Trial& trial_;
  const std::vector<std::vector<int64_t>> neighbors_;  // of each item, at most 64, nearest first
  mutable MemoCache<int64_t, FloatMatrix> centroids_;
};

}  // namespace privatemail::client::simulation

#endif  // PRIVATEMAIL_CLIENT_SIMULATION_QUERIES_H_

// The cells scheme on one split of the data: both sides in one process.
//
// Holds the features of targets, and chooses cells with seeded bits: see scene.h.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_CELL_TRIAL_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_CELL_TRIAL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

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

  // The plan with which a choice at this epsilon is expected to find most of the k nearest, when
  // `share` of the gallery answers. Three of four items of the gallery serve as the queries that
  // are known, the others as those that come: neither targets nor budget are spent.
  // INVALID_ARGUMENT: epsilon. FAILED_PRECONDITION: there are too few rows for any such plan.
  absl::StatusOr<CellPlan> PlanFor(double epsilon, double share) const;

  // Every target asks once and ranks what comes back by its features. `part` decides the choices.
  // INVALID_ARGUMENT naming what is out of range in the plan; FAILED_PRECONDITION: its cells are
  // fewer than two, since all anchors lie in one.
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

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_TRIAL_H_

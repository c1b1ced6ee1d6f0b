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
#include "client/evaluation/cell_law.h"
#include "client/evaluation/made_once.h"
#include "client/evaluation/scene.h"

namespace privatemail::client {

// Which items answer, and how cells are asked for (CellChoice, CellLaw).
struct CellPlan {
  int64_t cells = 0;    // K
  int64_t length = 0;   // items that answer at most
  int64_t overlap = 0;  // each item answers for the o cells nearest to it; 0: a cell's items are
                        // those that its queries want (common/cells), as the server has it
  int64_t ask = 1;
  int64_t focus = 1;
  bool graded = false;           // requires ask and focus 1
  double expected_fidelity = 0;  // @k, of the nearest 64 at most; estimated without targets
};

// Which plans come in question.
struct CellDesign {
  std::vector<int64_t> overlaps = {0};  // above 0 as many cells are asked for as fill the share
  std::vector<int64_t> focuses = {1};
  bool graded = false;
};

// Items that answer for a cell, if they are to be a share of `items`: all k that are asked for can
// come back.
int64_t ListLength(double share, int64_t k, int64_t items);

// Immutable but for what it keeps; thread-safe. Equal trials give equal results.
class CellTrial {
 public:
  // What a cell is: where one of the centroids of the anchors, or of the gallery, is nearest; or
  // where a router that the server has learnt from its gallery says so. All of it is public: the
  // last two tell where items lie, each centroid as the mean of its cell. Cells have five items or
  // more on an average (but there are two at least), and single ones may have fewer, down to one.
  // Those of the anchors are of a k-means of their features (kOfAnchors), of their coordinates in
  // the papers' supervised embedding, or of their linear discriminants (anchor_cuts.h), or they are
  // equally large (kBalanced); wherever anchors were clustered, a cell's centroid is in the space
  // of features, where queries are.
  enum class Kind { kOfAnchors, kOfGallery, kLearnt, kOfEmbedding, kOfDiscriminants, kBalanced };

  // embedded_anchors: their rows in the embedding, for kOfEmbedding.
  CellTrial(std::shared_ptr<const Trial> trial, Kind kind, Matrix embedded_anchors = {});

  // ListLength of this trial's items.
  int64_t LengthOf(double share) const;

  // The plan with which a choice at this epsilon is expected to find most of the k nearest, when
  // `share` of the gallery answers. Three of four items of the gallery serve as the queries that
  // are known, the others as those that come: neither targets nor budget are spent.
  // INVALID_ARGUMENT: epsilon. FAILED_PRECONDITION: there are too few rows for any such plan.
  absl::StatusOr<CellPlan> PlanFor(double epsilon, double share,
                                   const CellDesign& design = {}) const;

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
  FloatMatrix MakeCentroids(int64_t count) const;
  const Matrix& ClusteredRows() const;
  absl::StatusOr<double> ExpectedFidelity(const CellPlan& plan, double epsilon) const;

  std::shared_ptr<const Trial> trial_;
  Kind kind_;
  Matrix clustered_;  // where cells are of neither anchors' nor items' features
  std::shared_ptr<const ItemNeighbors> neighbors_;
  mutable MadeOnce<int64_t, FloatMatrix> centroids_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_TRIAL_H_

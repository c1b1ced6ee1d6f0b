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

namespace privatemail {

// One cell of K is asked for (w = t = 1 of PRIVACY.md section 5), and `length` items answer for it.
struct CellPlan {
  int64_t cells = 0;  // K
  int64_t length = 0;
  double expected_fidelity = 0;  // @k, of the nearest 64 at most; estimated without targets
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
  enum class Kind { kOfAnchors, kOfGallery, kLearnt };

  CellTrial(std::shared_ptr<const Trial> trial, Kind kind);

  // The number of cells with which a choice at this epsilon is expected to find most of the k
  // nearest, when `share` of the gallery answers. Three of four items of the gallery serve as the
  // queries that are known, the others as those that come: neither targets nor budget are spent.
  CellPlan PlanFor(double epsilon, double share) const;

  // Every target asks once and ranks what comes back by its features. `part` decides the choices.
  absl::StatusOr<Answers> AskAll(const CellPlan& plan, double epsilon,
                                 const std::string& part) const;

 private:
  struct Cells;
  // Made of all items as known queries, or without those that are held back to plan with.
  Cells MakeCells(int64_t count, double epsilon, int64_t length, bool all) const;
  std::shared_ptr<const FloatMatrix> Centroids(int64_t count) const;
  double ExpectedFidelity(int64_t count, double epsilon, int64_t length) const;

  std::shared_ptr<const Trial> trial_;
  Kind kind_;
  std::shared_ptr<const ItemNeighbors> neighbors_;
  mutable MadeOnce<int64_t, FloatMatrix> centroids_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_TRIAL_H_

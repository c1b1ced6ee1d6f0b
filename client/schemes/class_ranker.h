// Ranks the classes of a collection for a target whose class is not known, from public anchors.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CLASS_RANKER_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CLASS_RANKER_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// How many of a query's k places a class gets.
struct ClassPlaces {
  int64_t slot = 0;
  int64_t places = 0;    // >= 1
  double posterior = 0;  // of the class
};

// Posterior probabilities of the classes: a log-linear pool of
// - a regularised linear discriminant: -1/2 (x - mu_c)' S^-1 (x - mu_c), where S is the pooled
//   within-class covariance, shrunk towards a multiple of I (Friedman 1989, regularised
//   discriminant analysis);
// - nearest anchors: log mean_j exp(b x.p_j) over the class's anchors.
// Shrinkage, b, the weight of the two and the sharpness of each minimise the log loss of
// leave-one-out over the anchors (exact: mean and covariance without the row), so the better of the
// two prevails and posteriors are calibrated.
//
// Privacy: uses public anchors and the target on this machine. All slots' matches come back
// for every target, so reading some of them costs nothing and is seen by nobody.
//
// Immutable, thread-safe.
class ClassRanker {
 public:
  // anchors: P x d, unit rows; slot_of_anchor: P, every slot in [0, slots) has at least one.
  // Cost with r = min(P, d): O(P d r) once, and O(R (P d + slots r)) for the R <= 2,000 anchors
  // that are left out, fewer if there are many classes or anchors.
  ClassRanker(const Matrix& anchors, const std::vector<int64_t>& slot_of_anchor, int64_t slots);

  // One probability for each slot. unit_row: d, of length 1.
  Vector Posterior(const RowVector& unit_row) const;

  // Divides k places among classes, most probable first.
  // - classes m >= 1: the min(m, k, slots) most probable, each at least one place, the others in
  //   proportion to the posteriors.
  // - classes 0: maximises the expected worth of the matches, where of those that have the target's
  //   class each is worth half as much as the one before. A sure target takes all places from one
  //   class, an unsure one takes them from several.
  std::vector<ClassPlaces> Allot(const RowVector& unit_row, int64_t k, int64_t classes) const;

  // Share of the left-out anchors whose class gets a place: an estimate of recall@k. Absent where
  // no class has two anchors.
  std::optional<double> ExpectedRecall(int64_t k, int64_t classes) const;

  double shrinkage() const { return shrinkage_; }
  double kernel_weight() const { return kernel_weight_; }  // 0: discriminant only, 1: anchors only

 private:
  // The ranking of a left-out anchor.
  struct LeftOut {
    int64_t rank = 0;           // of its own class, from 0
    int64_t places_before = 0;  // that other classes get before it gets its first
  };

  Matrix anchors_;
  std::vector<int64_t> slot_of_anchor_;
  int64_t slots_;
  // In the basis of the covariance's eigenvectors.
  Matrix basis_;      // d x r
  Vector precision_;  // r: diagonal of S^-1
  Matrix means_;      // slots x r
  // By default nearest anchors by a wide kernel: without two anchors in a class none can be left
  // out to choose.
  double shrinkage_ = 1;
  double kernel_sharpness_ = 20;  // b
  double kernel_weight_ = 1;
  double discriminant_scale_ = 0;  // factors of the two scores in the pool
  double kernel_scale_ = 1;
  std::vector<LeftOut> left_out_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CLASS_RANKER_H_

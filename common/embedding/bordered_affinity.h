// Products with an affinity matrix of which a large part stays the same from one cloud to the next.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_

#include <memory>
#include <vector>

#include "common/embedding/affinity_operator.h"
#include "common/embedding/tiled_affinity.h"

namespace privatemail {

// Rows that stay, the anchors of a session, and what is computed of them once: their affinities
// among each other (as far as TiledAffinity keeps them) and the sums of these. Immutable,
// thread-safe.
class FixedRows {
 public:
  // points: p x d; kernel_denominator: c > 0.
  FixedRows(Matrix points, double kernel_denominator);

  const Matrix& points() const { return points_; }
  const Vector& squared_norms() const { return squared_norms_; }
  const AffinityOperator& affinity() const { return affinity_; }
  const Vector& degrees() const { return degrees_; }  // among the fixed rows
  double kernel_denominator() const { return kernel_denominator_; }

 private:
  Matrix points_;
  Vector squared_norms_;
  double kernel_denominator_;
  TiledAffinity affinity_;
  Vector degrees_;
};

// The rows in front of the fixed ones, the slots of a release: some of their own, and copies of
// fixed rows, which cost next to nothing.
struct Border {
  static constexpr Eigen::Index kOwn = -1;

  // For each row: the fixed row that it equals, which no other one does, or kOwn.
  std::vector<Eigen::Index> copy_of;
  Matrix own;  // o x d, those that are kOwn in their order
};

// W over the s rows of a border and the p fixed rows after them: exact, up to rounding in double.
// O(o (o + p) d) time once and O(p^2 k) a product; o (o + p) doubles of memory beside the fixed
// rows'.
//
// A copy has the fixed row's affinities, and 1 to that row itself. So the fixed rows' affinities
// are applied once, to the fixed rows' values with the copies' added on: terms of a sum are added
// in another order, and what is added for the pair itself is not multiplied. No term is subtracted
// again.
class BorderedAffinity : public AffinityOperator {
 public:
  BorderedAffinity(const Border& border, std::shared_ptr<const FixedRows> fixed);

  Eigen::Index size() const override {
    return static_cast<Eigen::Index>(copy_of_.size()) + fixed_->points().rows();
  }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  // The values of own rows and of fixed ones, copies' added: (o + p) x k out of (s + p) x k.
  Matrix Folded(const Matrix& v) const;
  // Products for own and for fixed rows, (o + p) x k, in those of all: (s + p) x k. v: of all.
  Matrix Unfolded(const Matrix& products, const Matrix& v) const;

  std::shared_ptr<const FixedRows> fixed_;
  std::vector<Eigen::Index> copy_of_;
  Matrix from_own_;  // o x (o + p): W between own rows and these, and the fixed ones
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_

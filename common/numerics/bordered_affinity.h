// Products with an affinity matrix of which a large part stays the same from one cloud to the next.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_BORDERED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_NUMERICS_BORDERED_AFFINITY_H_

#include <memory>

#include "common/numerics/affinity_operator.h"
#include "common/numerics/tiled_affinity.h"

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

// W over s rows of a border, the slots of a release, and the fixed rows after them: exact, up to
// rounding in double. O(s (s + p) d) time once and O((s + p)^2 k) a product; s (s + p) doubles of
// memory beside the fixed rows'.
class BorderedAffinity : public AffinityOperator {
 public:
  // border: s x d.
  BorderedAffinity(const Matrix& border, std::shared_ptr<const FixedRows> fixed);

  Eigen::Index size() const override { return from_border_.cols(); }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  std::shared_ptr<const FixedRows> fixed_;
  Matrix from_border_;  // s x (s + p): the first rows of W
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_BORDERED_AFFINITY_H_

// An affinity operator whose larger part is shared between clouds of points.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/embedding/affinity.h"
#include "common/embedding/tiled_affinity.h"

namespace privatemail {

// The fixed rows (a session's anchors) with their affinities among each other, as far as
// TiledAffinity caches them, and degrees. Immutable, thread-safe.
class FixedRows {
 public:
  // points: p x d; kernel_denominator: c > 0. Fails only when `observer` stops the product for the
  // degrees, with its error.
  static absl::StatusOr<std::shared_ptr<const FixedRows>> Create(
      Matrix points, double kernel_denominator, const ProductObserver& observer = nullptr);

  const Matrix& points() const { return points_; }
  const Vector& squared_norms() const { return squared_norms_; }
  const AffinityOperator& affinity() const { return affinity_; }
  const Vector& degrees() const { return degrees_; }  // among the fixed rows
  double kernel_denominator() const { return kernel_denominator_; }

 private:
  // Without degrees.
  FixedRows(Matrix points, double kernel_denominator);

  Matrix points_;
  Vector squared_norms_;
  double kernel_denominator_;
  TiledAffinity affinity_;
  Vector degrees_;
};

// The rows before the fixed ones, i.e. the slots of a release: own rows, and copies of fixed rows,
// which are nearly free.
struct Border {
  static constexpr Eigen::Index kOwn = -1;

  // For each row the index of the fixed row that it copies (each at most once), or kOwn.
  std::vector<Eigen::Index> copy_of;
  Matrix own;  // o x d: the kOwn rows in order
};

// W over the s border rows followed by the p fixed rows, exact up to rounding in double.
//
//   s border rows, o of them own; p fixed rows; d coordinates; k columns
//   time    O(o (o + p) d) at construction, O(p^2 k) a product
//   memory  o (o + p) doubles beside the fixed rows
//
// A copy has the affinities of its fixed row, and 1 to that row. The fixed rows' affinities are
// therefore applied once, to the fixed rows' values plus their copies' values; the pair's own
// affinity is added without a product. Nothing is subtracted, so nothing cancels.
class BorderedAffinity : public AffinityOperator {
 public:
  BorderedAffinity(const Border& border, std::shared_ptr<const FixedRows> fixed);

  Eigen::Index size() const override {
    return static_cast<Eigen::Index>(copy_of_.size()) + fixed_->points().rows();
  }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  // (s + p) x k -> (o + p) x k: adds the values of copies to those of their fixed rows.
  Matrix Fold(const Matrix& v) const;
  // (o + p) x k -> (s + p) x k: the inverse for products. v: the values of all rows.
  Matrix Unfold(const Matrix& products, const Matrix& v) const;

  std::shared_ptr<const FixedRows> fixed_;
  std::vector<Eigen::Index> copy_of_;
  Matrix from_own_;  // o x (o + p): W between own rows and own, then fixed rows
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_BORDERED_AFFINITY_H_

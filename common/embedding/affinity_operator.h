// The affinity matrix of a cloud of points as something that multiplies.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_OPERATOR_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_OPERATOR_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// Called about ten times a second during a product, by the thread that asked for it, with the share
// of it that is done. A status that is not OK ends the product, which then returns that status.
using ProductObserver = std::function<absl::Status(double share)>;

// An observer that asks `observer` once a second only, since it may write to a network.
ProductObserver OncePerSecond(ProductObserver observer);

// The vectorised exp stops short of zero. What it leaves of a row that is far from all of `rows`
// others is no neighbourhood: a degree that could hold no normal affinity, up to this, is zero.
double ZeroDegreeThreshold(Eigen::Index rows);

// W with W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, without W: n x n values that nobody could keep.
// TiledAffinity computes it exactly, FactoredAffinity within a proven error; plan_affinity.h
// chooses. Immutable after construction, thread-safe, on all cores, and the same bits on any number
// of them. Sees private data when a client builds it over its slots.
class AffinityOperator {
 public:
  virtual ~AffinityOperator() = default;

  virtual Eigen::Index size() const = 0;

  struct Product {
    Vector degrees;  // n: W 1
    Matrix product;  // n x k: W v
  };
  // W v and the degrees W 1 in one pass, for the first of several products. v: n x k. Returns what
  // the observer or the source of the points returned when it was not OK.
  absl::StatusOr<Product> MultiplyWithDegrees(const Matrix& v,
                                              const ProductObserver& observer = nullptr) const;

  // W v alone, for the later ones: the degrees stay the same. A row of degree zero, as the first
  // product found it, is zero in this one.
  absl::StatusOr<Matrix> Multiply(const Matrix& v, const Vector& degrees,
                                  const ProductObserver& observer = nullptr) const;

 private:
  // Sets product (n x k) to W v and, unless it is null, degrees (n) to W 1.
  virtual absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                            const ProductObserver& observer) const = 0;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_OPERATOR_H_

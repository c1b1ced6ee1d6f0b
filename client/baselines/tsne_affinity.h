// The joint probabilities that t-SNE keeps.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_TSNE_AFFINITY_H_
#define PRIVATEMAIL_CLIENT_BASELINES_TSNE_AFFINITY_H_

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail::client::baselines {

// van der Maaten and Hinton, "Visualizing Data using t-SNE", 2008, section 3.1: p_ij = (p_j|i +
// p_i|j) / (2 n), p_j|i proportional to exp(-b_i |x_i - x_j|^2), j != i, with b_i found by
// bisection so that the perplexity of row i, e to its entropy, is within 1e-10 of the one wanted
// (or as near as a double gets, where several rows are equally near). n x n, symmetric, zero
// diagonal, sums to 1. No entry off the diagonal is below 2^-52, so that logarithms stay finite.
//
// INVALID_ARGUMENT: fewer than 3 rows, a value not finite, or perplexity outside (1, n - 1). Time
// O(n^2 d), memory O(n^2).
absl::StatusOr<Matrix> TsneAffinity(const Matrix& rows, double perplexity);

// The affinities that were asked for last, for runs over the same rows that differ in their noise
// alone. Thread-safe; who asks while they are computed waits.
class LastTsneAffinity {
 public:
  // Errors of TsneAffinity.
  absl::StatusOr<std::shared_ptr<const Matrix>> Of(const Matrix& rows, double perplexity);

 private:
  std::mutex mutex_;  // guards what follows
  Matrix rows_;
  double perplexity_ = 0;
  std::shared_ptr<const Matrix> affinity_;
};

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_TSNE_AFFINITY_H_

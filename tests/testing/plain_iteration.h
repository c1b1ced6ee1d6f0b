// One private iteration in plain loops over the features; of the labels it uses the production
// label graph, which smlq_test.cc compares with a dense one: f = (F + Q) / 2 with
//   F_i = (alpha (L_Y Q)_i + sum_{j != i} w_ij q_j) / sum_{j != i} w_ij, w_ij = exp(-|x_i - x_j|^2
//   / c)
// (PRIVACY.md sections 1 and 4).
#ifndef PRIVATEMAIL_TESTS_TESTING_PLAIN_ITERATION_H_
#define PRIVATEMAIL_TESTS_TESTING_PLAIN_ITERATION_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/smlq.h"

namespace privatemail {

// rows: unit rows of slots, then anchors; labels: of each row; start: Q.
inline Matrix PlainIteration(const Matrix& rows, const std::vector<int32_t>& labels,
                             const Matrix& start, const EmbeddingSettings& settings) {
  const double c = settings.KernelDenominator();
  Matrix next =
      settings.alpha * LabelGraph(labels, settings.label_graph, c).MultiplyLaplacian(start);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    double degree = 0;
    for (Eigen::Index j = 0; j < rows.rows(); ++j) {
      if (j == i) continue;
      const double affinity = std::exp(-(rows.row(i) - rows.row(j)).squaredNorm() / c);
      next.row(i) += affinity * start.row(j);
      degree += affinity;
    }
    next.row(i) /= degree;
  }
  return (next + start) / 2;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_PLAIN_ITERATION_H_

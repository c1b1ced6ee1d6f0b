#include "client/baselines/tsne_affinity.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread_pool.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::baselines {
namespace {

// exp(-precision (d_j - nearest)) over the others of row `self`, scaled to sum 1, and its entropy.
// Taking off the nearest distance changes no quotient and keeps the sum at 1 or more.
double Conditional(const RowVector& distances, Eigen::Index self, double precision,
                   RowVector* probabilities) {
  double sum = 0;
  double moment = 0;
  for (Eigen::Index j = 0; j < distances.size(); ++j) {
    const double weight = j == self ? 0 : std::exp(-precision * distances(j));
    (*probabilities)(j) = weight;
    sum += weight;
    moment += weight * distances(j);
  }
  *probabilities /= sum;
  return std::log(sum) + precision * moment / sum;
}

// The precision is doubled or halved until the entropy is enclosed, then bisected.
RowVector RowOfPerplexity(RowVector distances, Eigen::Index self, double perplexity) {
  const double wanted = std::log(perplexity);
  distances(self) = std::numeric_limits<double>::infinity();
  distances.array() -= distances.minCoeff();
  distances(self) = 0;
  RowVector probabilities(distances.size());
  double precision = 1;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200; ++i) {
    const double excess = Conditional(distances, self, precision, &probabilities) - wanted;
    if (std::abs(excess) < 1e-10 / perplexity) break;
    (excess > 0 ? low : high) = precision;
    precision = std::isinf(high) ? 2 * precision : (low + high) / 2;
  }
  return probabilities;
}

}  // namespace

absl::StatusOr<Matrix> TsneAffinity(const Matrix& rows, double perplexity) {
  const Eigen::Index n = rows.rows();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("rows to embed", n, 3, std::numeric_limits<int>::max()));
  if (!rows.allFinite()) {
    return absl::InvalidArgumentError("rows to embed must be finite, but one is not");
  }
  const auto most = static_cast<double>(n - 1);
  if (!(perplexity > 1) || !(perplexity < most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("perplexity must lie strictly between 1 and ", most, ", but is ", perplexity));
  }
  Matrix conditional(n, n);
  ParallelFor(static_cast<int>(n), [&](int i) {
    RowVector distances(n);
    for (Eigen::Index j = 0; j < n; ++j) {
      distances(j) = SquaredDistance(rows.row(i).data(), rows.row(j).data(), rows.cols());
    }
    conditional.row(i) = RowOfPerplexity(distances, i, perplexity);
  });
  Matrix joint = (conditional + conditional.transpose()) / (2.0 * static_cast<double>(n));
  joint = joint.cwiseMax(std::numeric_limits<double>::epsilon());
  joint.diagonal().setZero();
  return joint;
}

absl::StatusOr<std::shared_ptr<const Matrix>> LastTsneAffinity::Of(const Matrix& rows,
                                                                   double perplexity) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const bool same = affinity_ != nullptr && perplexity == perplexity_ &&
                    rows.rows() == rows_.rows() && rows.cols() == rows_.cols() && rows == rows_;
  if (same) return affinity_;
  PM_ASSIGN_OR_RETURN(Matrix affinity, TsneAffinity(rows, perplexity));
  affinity_ = std::make_shared<const Matrix>(std::move(affinity));
  rows_ = rows;
  perplexity_ = perplexity;
  return affinity_;
}

}  // namespace privatemail::client::baselines

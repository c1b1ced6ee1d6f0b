#include "common/numerics/smlq.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {

absl::Status Validate(const EmbeddingSettings& settings) {
  PM_RETURN_IF_ERROR(CheckBetween("kernel_bandwidth", settings.kernel_bandwidth, 1e-3, 1e5));
  PM_RETURN_IF_ERROR(CheckBetween("alpha", settings.alpha, 0, 1e9));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("embedding_dim", settings.embedding_dim, 1, 1024));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("steps", settings.steps, 1, 10000));
  return CheckBetween("start_stddev", settings.start_stddev, 1e-30, 1e10);
}

Matrix SmlqUpdate(const Matrix& x, const AffinityOperator& feature_graph,
                  const LabelGraph& label_graph, double alpha) {
  // L_X x = Diag(degrees) x - W x, so 1/2 Diag(degrees)^-1 (alpha L_Y x - L_X x) + x is the mean of
  // x and (alpha L_Y x + W x) / degrees.
  const AffinityOperator::Product w = feature_graph.Multiply(x);
  const Matrix pulled = alpha * label_graph.MultiplyLaplacian(x) + w.product;
  Matrix updated = x;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    if (w.degrees[i] > 0) updated.row(i) = 0.5 * (pulled.row(i) / w.degrees[i] + x.row(i));
  }
  return updated;
}

absl::StatusOr<Matrix> SmlqIterate(Matrix start, const AffinityOperator& feature_graph,
                                   const LabelGraph& label_graph, double alpha, int steps,
                                   bool normalise, const StepObserver& observer) {
  Matrix x = std::move(start);
  for (int step = 1; step <= steps; ++step) {
    x = SmlqUpdate(x, feature_graph, label_graph, alpha);
    const double norm = x.stableNorm();
    if (!std::isfinite(norm) || (normalise && !(norm > 0))) {
      return absl::FailedPreconditionError(
          absl::StrCat("the embedding has norm ", norm, " after step ", step, " of ", steps,
                       ", expected a positive finite one: kernel_bandwidth or alpha is extreme"));
    }
    if (normalise) x *= std::sqrt(static_cast<double>(x.rows())) / norm;
    if (observer) PM_RETURN_IF_ERROR(observer(step, steps));
  }
  return x;
}

absl::StatusOr<Matrix> PostProcess(const Matrix& release, const LabelGraph& label_graph,
                                   const EmbeddingSettings& settings,
                                   const StepObserver& observer) {
  const AffinityOperator feature_graph(release, settings.KernelDenominator(), settings.steps);
  return SmlqIterate(release, feature_graph, label_graph, settings.alpha, settings.steps,
                     settings.normalise, observer);
}

double SmlqObjective(const Matrix& z, const AffinityOperator& feature_graph,
                     const LabelGraph& label_graph, double alpha) {
  const AffinityOperator::Product w = feature_graph.Multiply(z);
  const Matrix feature_laplacian_z = w.degrees.asDiagonal() * z - w.product;
  return z.cwiseProduct(feature_laplacian_z - alpha * label_graph.MultiplyLaplacian(z)).sum();
}

}  // namespace privatemail

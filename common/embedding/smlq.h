// The supervised manifold learning query (SMLQ): its update, its iteration and its objective.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/affinity.h"
#include "common/embedding/affinity_operator.h"
#include "common/embedding/label_graph.h"

namespace privatemail {

// How both sides embed. Defaults are the second paper's (table 2, Cars196) except for the label
// graph: with the text's `kernel` recall is near chance (PRIVACY.md section 1).
struct EmbeddingSettings {
  // s. The kernel's width over unit rows, which are at most 2 apart. The smaller, the more an
  // embedding follows the features and the more noise a release needs.
  double kernel_bandwidth = 6;
  // Weight of the label graph against the feature graph.
  double alpha = .6;
  KernelConvention kernel = KernelConvention::kTwoSigmaSquared;
  LabelGraphKind label_graph = LabelGraphKind::kDistance;
  // Columns of the embedding. Noise grows with its square root.
  int embedding_dim = 2;
  // T: iterations of the server, and post-processing iterations of a release.
  int steps = 5;
  // Scale to Frobenius norm sqrt(n) after each of these iterations, as the authors' code does.
  bool normalise = true;
  // s_q: standard deviation of the start. It scales release and noise alike; near the kernel's
  // scale (1) it costs recall (PRIVACY.md section 1).
  double start_stddev = 1e-8;

  double KernelDenominator() const {
    return privatemail::KernelDenominator(kernel, kernel_bandwidth);
  }
};

// INVALID_ARGUMENT naming the field unless 1e-3 <= kernel_bandwidth <= 1e5, 0 <= alpha <= 1e9, 1 <=
// embedding_dim <= 1024, 1 <= steps <= 10000 and 1e-30 <= start_stddev <= 1e10. What lies beyond is
// of no use, and within, no square that a bound adds up vanishes or overflows: a server cannot make
// a client's sensitivity too small by its choice of settings.
absl::Status Validate(const EmbeddingSettings& settings);

// One update, equation 4 of the second paper: 1/2 Diag(L_X)^+ (alpha L_Y - L_X) x + x with the
// pseudo-inverse of the diagonal, so a row of degree zero stays as it is. x: n x k; returns n x k,
// or what the product with the feature graph returned when it failed.
absl::StatusOr<Matrix> SmlqUpdate(const Matrix& x, const AffinityOperator& feature_graph,
                                  const LabelGraph& label_graph, double alpha);

// Called after each iteration with the number done and the number in all, and about once a second
// within one, with the fraction that is done. A status that is not OK stops the iteration, which
// then returns that status.
using StepObserver = std::function<absl::Status(double done, int steps)>;

// `steps` updates from `start` (n x k) over graphs that stay the same, each followed by the scaling
// to Frobenius norm sqrt(n) if `normalise`. Where processes share the rows of the graphs, `start`
// and what comes out are of the rows here, and n counts all. FAILED_PRECONDITION when the iterate
// is not finite, or zero and so cannot be scaled. Memory: 2 n k doubles beside `start` and what the
// graph takes. The graph's degrees are computed with the first product and returned in `degrees`
// unless it is null.
absl::StatusOr<Matrix> SmlqIterate(Matrix start, const AffinityOperator& feature_graph,
                                   const LabelGraph& label_graph, double alpha, int steps,
                                   bool normalise, const StepObserver& observer = nullptr,
                                   Vector* degrees = nullptr);

// Post-processing of a noisy release (algorithm 1 of the second paper, PRIVACY.md section 1 step
// 4): the feature graph is built once from the released rows alone and `settings.steps` iterations
// follow. It reads nothing private, so client, server or a third party may run it; all get the same
// coordinates. release: n x k; errors as SmlqIterate.
absl::StatusOr<Matrix> PostProcess(const Matrix& release, const LabelGraph& label_graph,
                                   const EmbeddingSettings& settings,
                                   const StepObserver& observer = nullptr);

// Tr(z' L_X z) - alpha Tr(z' L_Y z), equation 3 of the second paper, over all rows. z: n x k, or
// the rows here; degrees: those of the feature graph. Returns what the product with it returned
// when it failed.
absl::StatusOr<double> SmlqObjective(const Matrix& z, const AffinityOperator& feature_graph,
                                     const Vector& degrees, const LabelGraph& label_graph,
                                     double alpha, const ProductObserver& observer = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_

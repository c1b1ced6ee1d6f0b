// The supervised manifold learning query (SMLQ): settings, start, update, iteration and objective.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/embedding/affinity.h"
#include "common/embedding/label_graph.h"

namespace privatemail {

// The public start X_0 of an embedding. Numbers are those of v1.Start.
enum class StartKind {
  kRandom = 1,   // normal draws: the papers. Recall depends on the draw.
  kClasses = 2,  // start_stddev times the class code of each row (label_graph.h)
};

// Settings of the embedding, the same on both sides. Defaults: second paper, table 2 (Cars196),
// except the label graph: with the paper's `kernel` recall is near chance (PRIVACY.md section 1).
// For new collections see DefaultSettings (default_settings.h).
struct EmbeddingSettings {
  // s: kernel width over unit rows, which are at most 2 apart. A smaller value follows the features
  // more closely and needs more noise.
  double kernel_bandwidth = 6;
  // Weight of the label graph relative to the feature graph.
  double alpha = .6;
  KernelConvention kernel = KernelConvention::kTwoSigmaSquared;
  LabelGraphKind label_graph = LabelGraphKind::kDistance;
  // Columns of the embedding. Noise grows with its square root.
  int embedding_dim = 2;
  // T: iterations of the server, and of the post-processing of a release.
  int steps = 5;
  // Whether each iteration ends with NormalisingFactor.
  bool normalise = true;
  // s_q: standard deviation of the start. Scales release and noise alike; near 1, the kernel's
  // scale, it costs recall (PRIVACY.md section 1).
  double start_stddev = 1e-8;
  StartKind start = StartKind::kRandom;

  double KernelDenominator() const {
    return privatemail::KernelDenominator(kernel, kernel_bandwidth);
  }
};

// INVALID_ARGUMENT naming the field unless
//   1e-3 <= kernel_bandwidth <= 1e5, 0 <= alpha <= 1e9, 1 <= embedding_dim <= 1024,
//   1 <= steps <= 10000, 1e-30 <= start_stddev <= 1e10.
// Within these ranges no square in a bound underflows or overflows, so a server's settings cannot
// make a client's sensitivity too small.
absl::Status Validate(const EmbeddingSettings& settings);

// n x k draws of N(0, stddev^2), determined by the fingerprint alone:
// mt19937_64 seeded with it, Box-Muller over 53-bit uniforms, row after row. A public start of
// public rows, not noise: it protects nobody, and equal data get equal coordinates.
Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev);

// The k x k factor that ends an iteration, x := x * factor.
// - Not normalise: I.
// - Label graph kBalanced: the inverse of LabelGraph::ClassMeansInCode(x), so that the class means
//   equal the class code. Undoes scale, rotation, reflection and shear.
// - Other graphs: scales to Frobenius norm sqrt(n), as in the authors' code.
// step, of steps: for the message. FAILED_PRECONDITION: x is not finite, or cannot be normalised.
absl::StatusOr<Matrix> NormalisingFactor(absl::string_view what, int step, int steps,
                                         bool normalise, const LabelGraph& label_graph,
                                         const Matrix& x);

// One update, equation 4 of the second paper: 1/2 Diag(L_X)^+ (alpha L_Y - L_X) x + x. By the
// pseudo-inverse, a row of degree zero stays unchanged. x: n x k; returns n x k. Errors: those of
// the product with the feature graph and the observer.
absl::StatusOr<Matrix> SmlqUpdate(const Matrix& x, const AffinityOperator& feature_graph,
                                  const LabelGraph& label_graph, double alpha,
                                  const ProductObserver& observer = nullptr);

// Called after each iteration with the number done and the total, and about once a second within
// one, with a fraction. A status other than OK stops the iteration, which returns that status.
using StepObserver = std::function<absl::Status(double done, int steps)>;

// `steps` updates from `start` (n x k) over constant graphs, each followed by NormalisingFactor.
// - degrees: receives the feature graph's degrees from the first product, unless null.
// - Memory: 2 n k doubles beside `start` and the graphs.
// - Errors: NormalisingFactor, and those of the graphs and the observer.
absl::StatusOr<Matrix> SmlqIterate(Matrix start, const AffinityOperator& feature_graph,
                                   const LabelGraph& label_graph, double alpha, int steps,
                                   bool normalise, const StepObserver& observer = nullptr,
                                   Vector* degrees = nullptr);

// Post-processing of a noisy release (second paper, algorithm 1; PRIVACY.md section 1 step 4):
// settings.steps iterations over the feature graph of the released rows. Reads nothing private:
// client, server and third parties get the same coordinates. release: n x k. Errors: SmlqIterate.
absl::StatusOr<Matrix> PostProcess(const Matrix& release, const LabelGraph& label_graph,
                                   const EmbeddingSettings& settings,
                                   const StepObserver& observer = nullptr);

// Tr(z' L_X z) - alpha Tr(z' L_Y z), equation 3 of the second paper. z: n x k; degrees: of the
// feature graph. Errors: those of the product with it.
absl::StatusOr<double> SmlqObjective(const Matrix& z, const AffinityOperator& feature_graph,
                                     const Vector& degrees, const LabelGraph& label_graph,
                                     double alpha, const ProductObserver& observer = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_SMLQ_H_

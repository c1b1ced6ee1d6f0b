#include "common/embedding/smlq.h"

#include <cmath>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/plan_affinity.h"
#include "common/numerics/decompositions.h"
#include "common/numerics/row_groups.h"

namespace privatemail {

namespace {

// Relative error of an affinity, far below the single precision of a release.
constexpr double kPostProcessingTolerance = 1e-10;

// Replaces x by its update. product: W x.
void Update(Matrix product, const Vector& degrees, const LabelGraph& label_graph, double alpha,
            Matrix* x) {
  // L_X x = Diag(degrees) x - W x, so 1/2 Diag(degrees)^-1 (alpha L_Y x - L_X x) + x is the mean of
  // x and (alpha L_Y x + W x) / degrees.
  label_graph.AddLaplacian(alpha, *x, &product);
  for (Eigen::Index i = 0; i < x->rows(); ++i) {
    if (degrees[i] > 0) x->row(i) = 0.5 * (product.row(i) / degrees[i] + x->row(i));
  }
}

// FAILED_PRECONDITION, saying what cannot be normalised and why.
absl::Status CannotNormalise(absl::string_view what, int step, int steps, absl::string_view found) {
  return absl::FailedPreconditionError(absl::StrCat(what, " after step ", step, " of ", steps, ", ",
                                                    found,
                                                    ": kernel_bandwidth or alpha is extreme"));
}

void MultiplyRows(const Matrix& factor, Matrix* x) {
  for (Eigen::Index i = 0; i < x->rows(); ++i) x->row(i) = (x->row(i) * factor).eval();
}

// The observer of the product in step `step`.
ProductObserver ProductObserverOf(int step, int steps, const StepObserver& observer) {
  if (!observer) return nullptr;
  return OncePerSecond([=](double share) { return observer(step - 1 + share, steps); });
}

// In (0, 1], so that its logarithm is finite.
double Uniform(std::mt19937_64& bits) { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; }

}  // namespace

absl::Status Validate(const EmbeddingSettings& settings) {
  PM_RETURN_IF_ERROR(CheckBetween("kernel_bandwidth", settings.kernel_bandwidth, 1e-3, 1e5));
  PM_RETURN_IF_ERROR(CheckBetween("alpha", settings.alpha, 0, 1e9));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("embedding_dim", settings.embedding_dim, 1, 1024));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("steps", settings.steps, 1, 10000));
  return CheckBetween("start_stddev", settings.start_stddev, 1e-30, 1e10);
}

Matrix DeterministicStart(absl::string_view fingerprint, Eigen::Index n, Eigen::Index k,
                          double stddev) {
  // Unsigned even if char is signed.
  const std::vector<unsigned char> seed_bytes(fingerprint.begin(), fingerprint.end());
  std::seed_seq seed(seed_bytes.begin(), seed_bytes.end());
  std::mt19937_64 bits(seed);
  Matrix start(n, k);
  // std::normal_distribution differs between standard libraries. Two draws make two values.
  for (Eigen::Index i = 0; i < start.size(); i += 2) {
    const double radius = stddev * std::sqrt(-2 * std::log(Uniform(bits)));
    const double angle = 2 * std::numbers::pi * Uniform(bits);
    start.data()[i] = radius * std::cos(angle);
    if (i + 1 < start.size()) start.data()[i + 1] = radius * std::sin(angle);
  }
  return start;
}

absl::StatusOr<Matrix> NormalisingFactor(absl::string_view what, int step, int steps,
                                         bool normalise, const LabelGraph& label_graph,
                                         const Matrix& x) {
  const double norm = NormOverRows(x);
  if (!std::isfinite(norm) || (normalise && !(norm > 0))) {
    return CannotNormalise(absl::StrCat(what, " has norm ", norm), step, steps,
                           "expected a positive finite one");
  }
  const Matrix identity = Matrix::Identity(x.cols(), x.cols());
  if (!normalise) return identity;
  if (label_graph.kind() != LabelGraphKind::kBalanced) {
    return Matrix(std::sqrt(static_cast<double>(x.rows())) / norm * identity);
  }
  Matrix factor = Inverse(label_graph.ClassMeansInCode(x));
  if (factor.allFinite()) return factor;
  return CannotNormalise(what, step, steps, "its class means span too few dimensions");
}

absl::StatusOr<Matrix> SmlqUpdate(const Matrix& x, const AffinityOperator& feature_graph,
                                  const LabelGraph& label_graph, double alpha,
                                  const ProductObserver& observer) {
  PM_ASSIGN_OR_RETURN(AffinityOperator::Product w, feature_graph.MultiplyWithDegrees(x, observer));
  Matrix updated = x;
  Update(std::move(w.product), w.degrees, label_graph, alpha, &updated);
  return updated;
}

absl::StatusOr<Matrix> SmlqIterate(Matrix start, const AffinityOperator& feature_graph,
                                   const LabelGraph& label_graph, double alpha, int steps,
                                   bool normalise, const StepObserver& observer, Vector* degrees) {
  Matrix x = std::move(start);
  Vector own_degrees;
  if (degrees == nullptr) degrees = &own_degrees;
  for (int step = 1; step <= steps; ++step) {
    Matrix product;
    if (step == 1) {
      PM_ASSIGN_OR_RETURN(
          AffinityOperator::Product first,
          feature_graph.MultiplyWithDegrees(x, ProductObserverOf(step, steps, observer)));
      *degrees = std::move(first.degrees);
      product = std::move(first.product);
    } else {
      PM_ASSIGN_OR_RETURN(
          product, feature_graph.Multiply(x, *degrees, ProductObserverOf(step, steps, observer)));
    }
    Update(std::move(product), *degrees, label_graph, alpha, &x);
    PM_ASSIGN_OR_RETURN(const Matrix factor,
                        NormalisingFactor("the embedding", step, steps, normalise, label_graph, x));
    if (normalise) MultiplyRows(factor, &x);
    if (observer) PM_RETURN_IF_ERROR(observer(step, steps));
  }
  return x;
}

absl::StatusOr<Matrix> PostProcess(const Matrix& release, const LabelGraph& label_graph,
                                   const EmbeddingSettings& settings,
                                   const StepObserver& observer) {
  // Centring keeps distances and makes products small.
  Matrix centred = release.rowwise() - release.colwise().mean();
  const double denominator = settings.KernelDenominator();
  const AffinityPlan plan =
      PlanAffinity({.rows = centred.rows(),
                    .cols = centred.cols(),
                    .kernel_denominator = denominator,
                    .columns = release.cols(),
                    .products = settings.steps,
                    .in_memory = true,
                    .max_squared_length = centred.rowwise().squaredNorm().maxCoeff(),
                    .tolerance = kPostProcessingTolerance});
  const auto feature_graph = MakeAffinity(plan, std::move(centred), denominator, settings.steps);
  return SmlqIterate(release, *feature_graph, label_graph, settings.alpha, settings.steps,
                     settings.normalise, observer);
}

absl::StatusOr<double> SmlqObjective(const Matrix& z, const AffinityOperator& feature_graph,
                                     const Vector& degrees, const LabelGraph& label_graph,
                                     double alpha, const ProductObserver& observer) {
  // L_X z - alpha L_Y z = Diag(degrees) z - (W z + alpha L_Y z).
  PM_ASSIGN_OR_RETURN(Matrix pulled, feature_graph.Multiply(z, degrees, observer));
  label_graph.AddLaplacian(alpha, z, &pulled);
  const auto add = [&](Eigen::Index first, Eigen::Index count, Vector* sum) {
    for (Eigen::Index i = first; i < first + count; ++i) {
      (*sum)[0] += z.row(i).dot(degrees[i] * z.row(i) - pulled.row(i));
    }
  };
  return SumOverRows(RowGroups(z.rows()), 1, add)[0];
}

}  // namespace privatemail

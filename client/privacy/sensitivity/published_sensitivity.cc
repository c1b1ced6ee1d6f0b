#include "client/privacy/sensitivity/published_sensitivity.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// The printed abbreviations of V1, appendix E.
struct LaplaceTerms {
  double n;
  double alpha2;  // alpha^2
  double alpha;
  double s2;             // bandwidth^2
  double before;         // smallest feature degree before a row is added
  double after;          // smallest feature degree after a row is added
  double largest;        // largest feature degree
  double one_hot_after;  // smallest label degree after a row is added, one-hot labels

  LaplaceTerms(int64_t rows, double a, double bandwidth)
      : n(static_cast<double>(rows)),
        alpha2(a * a),
        alpha(a),
        s2(bandwidth * bandwidth),
        before(n * std::exp(-2 / s2) + std::expm1(-1 / (2 * s2))),
        after((n + 1) * std::exp(-2 / s2) - 1),
        largest(n + std::expm1(-1 / (2 * s2))),
        one_hot_after((n + 1) * std::exp(-1 / s2) - 1) {}

  // Printed lower bounds. label: of squared affinities; edge: of a label's times a feature's.
  double ZijMin(double label, double edge) const {
    return label / largest - 2 * alpha / before + label / n - 2 * alpha / after -
           2 * (alpha2 + 1) / (before * after) + 4 * alpha * edge / (n * largest);
  }
  double ZijMax(double label, double edge) const {
    return (alpha2 + 1) / before - 2 * alpha * edge / largest + (alpha2 + 1) / after -
           2 * alpha * edge / n - 2 * label / (n * largest) + 4 * alpha / (before * after);
  }
};

absl::Status CheckLaplaceInputs(int64_t n, double alpha, double bandwidth) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("n", n, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("alpha", alpha));
  return CheckFinitePositive("bandwidth", bandwidth);
}

absl::Status CheckDegrees(const LaplaceTerms& t) {
  if (t.before > 0 && t.after > 0 && t.one_hot_after > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the printed degrees must be positive, but are ", t.before, ", ", t.after,
                   " and ", t.one_hot_after, ": bandwidth is too small for n"));
}

absl::StatusOr<PublishedLaplaceConstants> WithPhi(double n, PublishedLaplaceConstants constants) {
  constants.phi_min = n * constants.z_ij_min + constants.z_ii_min;
  constants.phi_max = n * constants.z_ij_max + constants.z_ii_max;
  if (std::isfinite(constants.phi_min) && std::isfinite(constants.phi_max)) return constants;
  return absl::FailedPreconditionError(
      absl::StrCat("the printed phi must be finite, but lies between ", constants.phi_min, " and ",
                   constants.phi_max, ": alpha is extreme or bandwidth too small"));
}

double Squared(double x) { return x * x; }

absl::Status CheckPrintedKernel(const EmbeddingSettings& settings) {
  if (settings.kernel == KernelConvention::kTwoSigmaSquared) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the papers print their bounds for the kernel two_sigma_squared only, but these settings "
      "have another");
}

}  // namespace

absl::StatusOr<PublishedGaussianBound> PublishedGaussianSensitivity(int64_t n, double alpha,
                                                                    double bandwidth,
                                                                    int64_t largest_label,
                                                                    double frobenius_norm) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("n", n, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("alpha", alpha));
  PM_RETURN_IF_ERROR(CheckFinitePositive("bandwidth", bandwidth));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("largest_label", largest_label, 0, int64_t{1} << 31));
  PM_RETURN_IF_ERROR(CheckFinitePositive("start's Frobenius norm", frobenius_norm));
  const double s2 = bandwidth * bandwidth;
  const auto rows = static_cast<double>(n);
  const auto c2 = static_cast<double>(largest_label) * static_cast<double>(largest_label);
  const double alpha2 = alpha * alpha;
  // Printed abbreviations: smallest degrees before and after a row is added, largest after.
  const double a = rows * std::exp(-2 / s2) + std::expm1(-1 / (2 * s2));
  const double b = (rows + 1) * std::exp(-2 / s2) - 1;
  const double t = rows + std::expm1(-1 / (2 * s2));
  const double label_floor =
      (rows + 1) * std::exp(-c2 / (2 * s2)) - 1;  // negative for many classes
  const double label_edge = std::exp(-(c2 + 4) / (2 * s2));

  PublishedGaussianBound bound;
  bound.m_ii = alpha2 * (std::pow(rows / a, 2) + std::pow(rows / b, 2) -
                         2 * label_floor * label_floor / (rows * t));
  bound.m_ij = (alpha2 + 1) / (a * a) - 2 * alpha * label_edge / (t * t) + (alpha2 + 1) / (b * b) -
               2 * alpha * label_edge / (rows * rows) -
               2 * (alpha2 * std::exp(-c2 / s2) + std::exp(-4 / s2)) / (rows * t) +
               4 * alpha / (a * b);
  bound.m = rows * bound.m_ij + bound.m_ii;
  bound.sensitivity_as_printed = bound.m * std::sqrt(rows + 1) / 2 * frobenius_norm;
  bound.sensitivity_supported_by_proof = std::sqrt(bound.m * (rows + 1)) / 2 * frobenius_norm;
  if (!(bound.sensitivity_as_printed > 0) || !std::isfinite(bound.sensitivity_as_printed)) {
    return absl::FailedPreconditionError(absl::StrCat("the printed formula gives a sensitivity of ",
                                                      bound.sensitivity_as_printed,
                                                      ", expected a positive finite number"));
  }
  return bound;
}

absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceOneHot(int64_t rows, double alpha,
                                                                 double bandwidth) {
  PM_RETURN_IF_ERROR(CheckLaplaceInputs(rows, alpha, bandwidth));
  const LaplaceTerms t(rows, alpha, bandwidth);
  PM_RETURN_IF_ERROR(CheckDegrees(t));
  const double label = t.alpha2 * std::exp(-2 / t.s2) + std::exp(-4 / t.s2);
  const double edge = std::exp(-3 / t.s2);
  const double one_hot_before = t.n * std::exp(-1 / t.s2) + std::expm1(-1 / (2 * t.s2));
  return WithPhi(
      t.n, {.z_ij_min = t.ZijMin(label, edge),
            .z_ij_max = t.ZijMax(label, edge),
            .z_ii_min =
                t.alpha2 * (Squared(one_hot_before / t.largest) + Squared(t.one_hot_after / t.n) -
                            2 * t.n * t.largest / (t.before * t.one_hot_after)),
            .z_ii_max = t.alpha2 * (Squared(t.largest / t.before) + Squared(t.n / t.after) -
                                    2 * one_hot_before * t.one_hot_after / (t.n * t.largest))});
}

absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceInteger(int64_t rows, double alpha,
                                                                  double bandwidth,
                                                                  int64_t largest_label) {
  PM_RETURN_IF_ERROR(CheckLaplaceInputs(rows, alpha, bandwidth));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("largest_label", largest_label, 0, int64_t{1} << 31));
  const LaplaceTerms t(rows, alpha, bandwidth);
  PM_RETURN_IF_ERROR(CheckDegrees(t));
  const double c2 = Squared(static_cast<double>(largest_label));
  const double label = t.alpha2 * std::exp(-c2 / t.s2) + std::exp(-4 / t.s2);
  // Negative for many classes: one of the printed bound's flaws.
  const double label_floor = (t.n + 1) * std::exp(-c2 / (2 * t.s2)) - 1;
  return WithPhi(
      t.n,
      {// The two bounds print the edge with different denominators, s^2 and 2 s^2.
       .z_ij_min = t.ZijMin(label, std::exp(-(c2 + 4) / t.s2)),
       .z_ij_max = t.ZijMax(label, std::exp(-(c2 + 4) / (2 * t.s2))),
       .z_ii_min = t.alpha2 * (Squared(label_floor / t.largest) + Squared(label_floor / t.n) -
                               2 * t.n * t.n / (t.before * t.one_hot_after)),
       .z_ii_max = t.alpha2 * (Squared(t.n / t.before) + Squared(t.n / t.after) -
                               2 * Squared(label_floor) / (t.n * t.largest))});
}

absl::StatusOr<double> PublishedLaplaceLnBeta(int64_t n, int64_t k) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("n", n, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, int64_t{1} << 20));
  return -4 * static_cast<double>(k) * static_cast<double>(n);
}

absl::StatusOr<double> PublishedLaplaceSensitivity(const PublishedLaplaceConstants& constants,
                                                   int64_t n, int64_t k, double ln_beta,
                                                   double start_stddev) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("n", n, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, int64_t{1} << 20));
  PM_RETURN_IF_ERROR(CheckFinitePositive("-ln_beta", -ln_beta));
  PM_RETURN_IF_ERROR(CheckFinitePositive("start_stddev", start_stddev));
  const double entries = static_cast<double>(n) * static_cast<double>(k);
  const double squared = -ln_beta * Squared(Squared(constants.phi_max) / constants.phi_min) -
                         2 * std::sqrt(entries * -ln_beta) * Squared(constants.phi_min);
  const double sensitivity = start_stddev / 2 * std::sqrt(squared);
  if (std::isfinite(sensitivity)) return sensitivity;
  return absl::FailedPreconditionError(
      absl::StrCat("the printed formula has ", squared,
                   " under its root, expected a finite number that is not negative"));
}

absl::StatusOr<double> PublishedGaussianReleaseSensitivity(const EmbeddingSettings& settings,
                                                           const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrintedKernel(settings));
  PM_ASSIGN_OR_RETURN(
      const PublishedGaussianBound bound,
      PublishedGaussianSensitivity(inputs.start.rows(), inputs.alpha, settings.kernel_bandwidth,
                                   inputs.slots - 1, inputs.start.norm()));
  return bound.sensitivity_as_printed;
}

absl::StatusOr<double> PublishedLaplaceReleaseSensitivity(const EmbeddingSettings& settings,
                                                          const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrintedKernel(settings));
  const auto n = static_cast<int64_t>(inputs.start.rows());
  const auto k = static_cast<int64_t>(inputs.start.cols());
  PM_ASSIGN_OR_RETURN(
      const PublishedLaplaceConstants constants,
      settings.label_graph == LabelGraphKind::kOneHotKernel
          ? PublishedLaplaceOneHot(n, inputs.alpha, settings.kernel_bandwidth)
          : PublishedLaplaceInteger(n, inputs.alpha, settings.kernel_bandwidth, inputs.slots - 1));
  PM_ASSIGN_OR_RETURN(const double ln_beta, PublishedLaplaceLnBeta(n, k));
  return PublishedLaplaceSensitivity(constants, n, k, ln_beta, settings.start_stddev);
}

}  // namespace privatemail::client

#include "client/privacy/sensitivity/published_sensitivity.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

double Squared(double x) { return x * x; }

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

absl::Status CheckDegrees(const LaplaceTerms& t) {
  if (t.before > 0 && t.after > 0 && t.one_hot_after > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the printed degrees must be positive, but are ", t.before, ", ", t.after,
                   " and ", t.one_hot_after, ": bandwidth is too small for n"));
}

// The constants are computed in functions that are not inlined: a compiler that fuses their
// products with the sums that follow would change the last digit of a published release.

// Bounds z of V1's differences of two Laplacians' entries, off the diagonal and on it.
struct LaplaceConstants {
  double ij_min;
  double ij_max;
  double ii_min;
  double ii_max;
};

[[gnu::noinline]] LaplaceConstants OneHotConstants(const LaplaceTerms& t) {
  const double label = t.alpha2 * std::exp(-2 / t.s2) + std::exp(-4 / t.s2);
  const double edge = std::exp(-3 / t.s2);
  const double one_hot_before = t.n * std::exp(-1 / t.s2) + std::expm1(-1 / (2 * t.s2));
  return {
      .ij_min = t.ZijMin(label, edge),
      .ij_max = t.ZijMax(label, edge),
      .ii_min = t.alpha2 * (Squared(one_hot_before / t.largest) + Squared(t.one_hot_after / t.n) -
                            2 * t.n * t.largest / (t.before * t.one_hot_after)),
      .ii_max = t.alpha2 * (Squared(t.largest / t.before) + Squared(t.n / t.after) -
                            2 * one_hot_before * t.one_hot_after / (t.n * t.largest))};
}

[[gnu::noinline]] LaplaceConstants IntegerConstants(const LaplaceTerms& t, double largest_label) {
  const double c2 = Squared(largest_label);
  const double label = t.alpha2 * std::exp(-c2 / t.s2) + std::exp(-4 / t.s2);
  // Negative for many classes: one of the printed bound's flaws.
  const double label_floor = (t.n + 1) * std::exp(-c2 / (2 * t.s2)) - 1;
  return {// The two bounds print the edge with different denominators, s^2 and 2 s^2.
          .ij_min = t.ZijMin(label, std::exp(-(c2 + 4) / t.s2)),
          .ij_max = t.ZijMax(label, std::exp(-(c2 + 4) / (2 * t.s2))),
          .ii_min = t.alpha2 * (Squared(label_floor / t.largest) + Squared(label_floor / t.n) -
                                2 * t.n * t.n / (t.before * t.one_hot_after)),
          .ii_max = t.alpha2 * (Squared(t.n / t.before) + Squared(t.n / t.after) -
                                2 * Squared(label_floor) / (t.n * t.largest))};
}

struct GaussianConstants {
  double m_ij;
  double m_ii;
};

// V2, equations 7 and 8. Not inlined: a compiler that fuses these products with the sum that
// follows would change the last digit of a published release.
[[gnu::noinline]] GaussianConstants GaussianConstantsOf(double rows, double alpha, double s2,
                                                        double c2) {
  const double alpha2 = alpha * alpha;
  // Printed abbreviations: smallest degrees before and after a row is added, largest after.
  const double a = rows * std::exp(-2 / s2) + std::expm1(-1 / (2 * s2));
  const double b = (rows + 1) * std::exp(-2 / s2) - 1;
  const double t = rows + std::expm1(-1 / (2 * s2));
  const double label_floor =
      (rows + 1) * std::exp(-c2 / (2 * s2)) - 1;  // negative for many classes
  const double label_edge = std::exp(-(c2 + 4) / (2 * s2));

  const double m_ii = alpha2 * (std::pow(rows / a, 2) + std::pow(rows / b, 2) -
                                2 * label_floor * label_floor / (rows * t));
  const double m_ij = (alpha2 + 1) / (a * a) - 2 * alpha * label_edge / (t * t) +
                      (alpha2 + 1) / (b * b) - 2 * alpha * label_edge / (rows * rows) -
                      2 * (alpha2 * std::exp(-c2 / s2) + std::exp(-4 / s2)) / (rows * t) +
                      4 * alpha / (a * b);
  return {.m_ij = m_ij, .m_ii = m_ii};
}

absl::Status CheckPrinted(const EmbeddingSettings& settings, const IterationInputs& inputs) {
  if (settings.kernel != KernelConvention::kTwoSigmaSquared) {
    return absl::FailedPreconditionError(
        "the papers print their bounds for the kernel two_sigma_squared only, but these settings "
        "have another");
  }
  return CheckIntegerBetween("n", inputs.start.rows(), 1, int64_t{1} << 40);
}

}  // namespace

absl::StatusOr<double> PublishedGaussianSensitivity(const EmbeddingSettings& settings,
                                                    const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrinted(settings, inputs));
  const double norm = inputs.start.norm();
  PM_RETURN_IF_ERROR(CheckFinitePositive("start's Frobenius norm", norm));
  const auto rows = static_cast<double>(inputs.start.rows());
  const GaussianConstants m =
      GaussianConstantsOf(rows, inputs.alpha, Squared(settings.kernel_bandwidth),
                          Squared(static_cast<double>(inputs.slots - 1)));
  const double sensitivity = (rows * m.m_ij + m.m_ii) * std::sqrt(rows + 1) / 2 * norm;
  if (sensitivity > 0 && std::isfinite(sensitivity)) return sensitivity;
  return absl::FailedPreconditionError(absl::StrCat("the printed formula gives a sensitivity of ",
                                                    sensitivity,
                                                    ", expected a positive finite number"));
}

absl::StatusOr<double> PublishedLaplaceSensitivity(const EmbeddingSettings& settings,
                                                   const IterationInputs& inputs) {
  PM_RETURN_IF_ERROR(CheckPrinted(settings, inputs));
  const LaplaceTerms t(inputs.start.rows(), inputs.alpha, settings.kernel_bandwidth);
  PM_RETURN_IF_ERROR(CheckDegrees(t));
  const LaplaceConstants z = settings.label_graph == LabelGraphKind::kOneHotKernel
                                 ? OneHotConstants(t)
                                 : IntegerConstants(t, static_cast<double>(inputs.slots - 1));
  const double phi_min = t.n * z.ij_min + z.ii_min;
  const double phi_max = t.n * z.ij_max + z.ii_max;
  if (!std::isfinite(phi_min) || !std::isfinite(phi_max)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the printed phi must be finite, but lies between ", phi_min, " and ", phi_max,
                     ": alpha is extreme or bandwidth too small"));
  }
  const double entries = static_cast<double>(inputs.start.size());
  const double ln_beta = -4 * entries;
  const double squared = -ln_beta * Squared(Squared(phi_max) / phi_min) -
                         2 * std::sqrt(entries * -ln_beta) * Squared(phi_min);
  const double sensitivity = settings.start_stddev / 2 * std::sqrt(squared);
  if (std::isfinite(sensitivity)) return sensitivity;
  return absl::FailedPreconditionError(
      absl::StrCat("the printed formula has ", squared,
                   " under its root, expected a finite number that is not negative"));
}

}  // namespace privatemail::client

#include "common/numerics/plan_affinity.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/numerics/factored_affinity.h"
#include "common/numerics/tiled_affinity.h"

namespace privatemail {
namespace {

// Some ten milliseconds of multiplications.
constexpr double kNextToNothing = 1e8;

// Multiplications of one column's product, a pair's kernel counted as 16 of them.
double TiledCost(const AffinityTask& task) {
  const auto n = static_cast<double>(task.rows), d = static_cast<double>(task.cols);
  return n * n / 2 * (d + 16);
}

double FactoredCost(const AffinityTask& task, int degree) {
  const auto n = static_cast<double>(task.rows), d = static_cast<double>(task.cols);
  return 2 * n * (d + 16 + (degree == 2 ? d * d : 0));
}

AffinityPlan Tiled(absl::string_view reason) {
  AffinityPlan plan;
  plan.why = absl::StrCat("tiled: ", reason);
  return plan;
}

}  // namespace

AffinityPlan PlanAffinity(const AffinityTask& task) {
  if (!(task.tolerance > 0)) return Tiled("exact affinities are asked for");
  if (TiledCost(task) <= kNextToNothing) {
    return Tiled(absl::StrCat("for ", task.rows, " rows exact affinities cost next to nothing"));
  }
  const double rate = 2 / task.kernel_denominator;
  const double range = rate * task.most_squared_length;
  // Also when it is not a number.
  if (!(range <= kMostExpRange)) {
    return Tiled(absl::StrCat("the exponent ranges over +-", range,
                              ", too far for a polynomial of degree 2"));
  }
  const double rounding = FactoredRounding(task.rows, task.cols, range);
  double error = 0;
  for (int degree = 0; degree <= 2; ++degree) {
    const ExpPolynomial polynomial = FitExp(degree, rate, task.most_squared_length);
    error = polynomial.relative_error + rounding;
    if (!(error <= task.tolerance)) continue;
    if (FactoredCost(task, degree) >= TiledCost(task)) {
      return Tiled(absl::StrCat("for ", task.rows, " rows it costs less than degree ", degree));
    }
    return {.factored = true,
            .polynomial = polynomial,
            .relative_error = error,
            .why = absl::StrCat("factored, degree ", degree, ": proven relative error ", error,
                                ", ", task.tolerance, " allowed")};
  }
  return Tiled(
      absl::StrCat("degree 2 has a relative error of ", error, ", ", task.tolerance, " allowed"));
}

std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan,
                                               std::shared_ptr<const PointSource> points,
                                               double kernel_denominator) {
  if (!plan.factored) return std::make_unique<TiledAffinity>(std::move(points), kernel_denominator);
  return std::make_unique<FactoredAffinity>(std::move(points), kernel_denominator, plan.polynomial);
}

}  // namespace privatemail

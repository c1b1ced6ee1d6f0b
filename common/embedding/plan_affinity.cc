#include "common/embedding/plan_affinity.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/embedding/factored_affinity.h"
#include "common/embedding/low_dimensional_affinity.h"
#include "common/embedding/tiled_affinity.h"

namespace privatemail {
namespace {

// About ten milliseconds of multiplications.
constexpr double kNegligibleCost = 1e8;

constexpr Eigen::Index kMaxLowDimensions = 3;

// Multiplications of one product; a kernel value counts as 16. The degrees are one more column.
double TiledCost(const AffinityTask& task) {
  const auto n = static_cast<double>(task.rows), d = static_cast<double>(task.cols);
  return n * n / 2 * (d + 16 + 2 * static_cast<double>(task.columns + 1));
}

double FactoredCost(const AffinityTask& task, int degree) {
  const auto n = static_cast<double>(task.rows), d = static_cast<double>(task.cols);
  return 2 * n * (d + 16 + (degree == 2 ? d * d : 0)) * static_cast<double>(task.columns + 1);
}

// The features are computed once for all products.
double LowDimensionalCost(const AffinityTask& task, double features) {
  const auto n = static_cast<double>(task.rows);
  return n * features * (1.0 / task.products + 2 * static_cast<double>(task.columns + 1));
}

AffinityPlan Tiled(absl::string_view reason) {
  AffinityPlan plan;
  plan.why = absl::StrCat("tiled: ", reason);
  return plan;
}

// Returns the plan of an operator whose error is within the tolerance.
AffinityPlan Approximate(AffinityPlan::Kind kind, absl::string_view name, int degree, double error,
                         double tolerance) {
  AffinityPlan plan;
  plan.kind = kind;
  plan.relative_error = error;
  plan.why = absl::StrCat(name, ", degree ", degree, ": proven relative error ", error, ", ",
                          tolerance, " allowed");
  return plan;
}

double SeriesBytes(Eigen::Index rows, double features) {
  return static_cast<double>(sizeof(double)) * static_cast<double>(rows) * features;
}

AffinityPlan PlanLowDimensional(const AffinityTask& task) {
  const double range = 2 / task.kernel_denominator * task.max_squared_length;
  // The other half of the tolerance is for rounding.
  const std::optional<int> degree = TaylorDegree(range, task.tolerance / 2);
  if (!degree.has_value()) {
    return Tiled(absl::StrCat("the exponent ranges over +-", range, ", too far for a series"));
  }
  const double features = LowDimensionalAffinity::Features(task.cols, *degree);
  if (SeriesBytes(task.rows, features) > static_cast<double>(kMaxSeriesBytes)) {
    return Tiled(
        absl::StrCat(features, " features a row would take more than ", kMaxSeriesBytes, " bytes"));
  }
  if (LowDimensionalCost(task, features) >= TiledCost(task)) {
    return Tiled(
        absl::StrCat("for ", task.rows, " rows it costs less than ", features, " features a row"));
  }
  const double error =
      TaylorError(*degree, range) + LowDimensionalRounding(task.rows, task.cols, *degree, range);
  if (!(error <= task.tolerance)) {
    return Tiled(absl::StrCat("a series rounds to ", error, ", ", task.tolerance, " allowed"));
  }
  AffinityPlan plan = Approximate(AffinityPlan::Kind::kLowDimensional, "low-dimensional", *degree,
                                  error, task.tolerance);
  plan.taylor_degree = *degree;
  return plan;
}

}  // namespace

int64_t MaxAffinityBytes(Eigen::Index rows, Eigen::Index cols) {
  const int64_t kept = rows <= TiledAffinity::kMaxCachedRows
                           ? static_cast<int64_t>(sizeof(double)) * rows * rows / 2
                           : 0;
  if (cols > kMaxLowDimensions) return kept;
  const double features = LowDimensionalAffinity::Features(cols, kMaxTaylorDegree);
  const double series = std::min(SeriesBytes(rows, features), static_cast<double>(kMaxSeriesBytes));
  return std::max(kept, static_cast<int64_t>(series));
}

AffinityPlan PlanAffinity(const AffinityTask& task) {
  if (!(task.tolerance > 0)) return Tiled("the tolerance is 0");
  if (task.in_memory && task.cols <= kMaxLowDimensions) return PlanLowDimensional(task);
  if (TiledCost(task) <= kNegligibleCost) {
    return Tiled(absl::StrCat("for ", task.rows, " rows exact affinities cost next to nothing"));
  }
  const double rate = 2 / task.kernel_denominator;
  const double range = rate * task.max_squared_length;
  if (!(range <= kMaxExpRange)) {
    return Tiled(absl::StrCat("the exponent ranges over +-", range,
                              ", too far for a polynomial of degree 2"));
  }
  const double rounding = FactoredRounding(task.rows, task.cols, range);
  double error = 0;
  for (int degree = 0; degree <= 2; ++degree) {
    const ExpPolynomial polynomial = FitExp(degree, rate, task.max_squared_length);
    error = polynomial.relative_error + rounding;
    if (!(error <= task.tolerance)) continue;
    if (FactoredCost(task, degree) >= TiledCost(task)) {
      return Tiled(absl::StrCat("for ", task.rows, " rows it costs less than degree ", degree));
    }
    AffinityPlan plan =
        Approximate(AffinityPlan::Kind::kFactored, "factored", degree, error, task.tolerance);
    plan.polynomial = polynomial;
    return plan;
  }
  return Tiled(
      absl::StrCat("degree 2 has a relative error of ", error, ", ", task.tolerance, " allowed"));
}

std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan, Matrix points,
                                               double kernel_denominator, int products) {
  if (plan.kind == AffinityPlan::Kind::kTiled) {
    return std::make_unique<TiledAffinity>(std::move(points), kernel_denominator, products);
  }
  if (plan.kind == AffinityPlan::Kind::kLowDimensional) {
    return std::make_unique<LowDimensionalAffinity>(points, kernel_denominator, plan.taylor_degree);
  }
  return MakeAffinity(plan, std::make_shared<MatrixPoints>(std::move(points)), kernel_denominator);
}

std::unique_ptr<AffinityOperator> MakeAffinity(const AffinityPlan& plan,
                                               std::shared_ptr<const PointSource> points,
                                               double kernel_denominator) {
  if (plan.kind == AffinityPlan::Kind::kFactored) {
    return std::make_unique<FactoredAffinity>(std::move(points), kernel_denominator,
                                              plan.polynomial);
  }
  return std::make_unique<TiledAffinity>(std::move(points), kernel_denominator);
}

}  // namespace privatemail

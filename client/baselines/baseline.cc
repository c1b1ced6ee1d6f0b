#include "client/baselines/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::baselines {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

absl::Status Check(const Cost& cost, int64_t classes) {
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("epsilon", cost.epsilon));
  if (!(cost.delta >= 0) || !(cost.delta < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta must be at least 0 and below 1, but is ", cost.delta));
  }
  return CheckIntegerBetween("classes", classes, 2, kMaxCount);
}

}  // namespace

Guarantee NoGuarantee() {
  return {.epsilon = std::numeric_limits<double>::infinity(),
          .delta = 0,
          .neighbours = "none",
          .proven = true,
          .source = "no noise: nothing is promised"};
}

absl::Status CheckSplit(const DataSplit& split, int64_t dimension) {
  const Matrix& gallery = split.gallery.features;
  const Matrix& targets = split.targets.features;
  if (gallery.rows() == 0 || targets.rows() == 0) {
    return absl::InvalidArgumentError(gallery.rows() == 0
                                          ? "gallery must have rows, but has none"
                                          : "targets must have rows, but have none");
  }
  PM_RETURN_IF_ERROR(CheckColumns("targets", gallery.cols(), targets.cols()));
  return CheckIntegerBetween("dimension", dimension, 1, gallery.cols());
}

absl::StatusOr<Matrix> PrincipalAxes(const Matrix& symmetric, int64_t count) {
  const SymmetricEigendecomposition decomposition = DecomposeSymmetric(symmetric);
  if (!symmetric.allFinite() || !decomposition.converged) {
    return absl::InvalidArgumentError(
        "a matrix must have finite values for its eigenvectors, but one is not, or they diverge");
  }
  return Matrix(decomposition.eigenvectors.rightCols(count).rowwise().reverse());
}

absl::StatusOr<double> LabelHidingCeilingOverTargets(const Cost& cost, int64_t classes,
                                                     double largest) {
  PM_RETURN_IF_ERROR(Check(cost, classes));
  const auto all = static_cast<double>(classes);
  if (!(largest >= (1 - 1e-12) / all) || !(largest <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "largest must be at least 1 / classes = ", 1 / all, " and at most 1, but is ", largest));
  }
  const double other = std::exp(-cost.epsilon);
  return std::min(1.0,
                  (1 + (all - 1) * cost.delta * other) / (1 + (1 - largest) / largest * other));
}

absl::StatusOr<double> LabelHidingCeiling(const Cost& cost, int64_t classes, int64_t k) {
  PM_RETURN_IF_ERROR(Check(cost, classes));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", k, 1, kMaxCount));
  if (k >= classes) return 1;
  // Both sides of the fraction over e^epsilon, which overflows where the ceiling is 1.
  const double other = std::exp(-cost.epsilon);
  const auto answers = static_cast<double>(k);
  const auto all = static_cast<double>(classes);
  return std::min(1.0,
                  (answers + (all - 1) * cost.delta * other) / (answers + (all - answers) * other));
}

}  // namespace privatemail::client::baselines

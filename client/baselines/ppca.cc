#include "client/baselines/ppca.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "client/baselines/bingham.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::baselines {
namespace {

constexpr double kStepsPerUnit = 0x1p20;  // of a score

constexpr char kNeighbours[] = "one gallery row replaced by any other of length 1";

BaselineResult Projected(const DataSplit& split, const Matrix& axes, Guarantee guarantee) {
  return {split.gallery.features * axes, split.targets.features * axes, std::move(guarantee),
          kPpcaProtects};
}

// The principal axes of anchors drawn with replacement, public like the anchors.
absl::StatusOr<Matrix> AxesOfASample(const Matrix& anchors, const CandidatePpcaOptions& options,
                                     BitSource& bits) {
  const std::vector<uint64_t> bounds(static_cast<size_t>(options.anchors_each),
                                     static_cast<uint64_t>(anchors.rows()));
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> chosen, SampleUniform(bounds, bits));
  // The left singular vectors are orthonormal however few directions the sample spans.
  Eigen::MatrixXd sample(anchors.cols(), options.anchors_each);
  for (Eigen::Index i = 0; i < sample.cols(); ++i) {
    sample.col(i) = anchors.row(static_cast<Eigen::Index>(chosen[static_cast<size_t>(i)]));
  }
  return Matrix(ThinLeftSvd(sample).u.leftCols(options.dimension));
}

absl::StatusOr<std::vector<Matrix>> Candidates(const Matrix& anchors,
                                               const CandidatePpcaOptions& options,
                                               BitSource& bits) {
  std::vector<Matrix> candidates;
  for (int64_t i = 0; i < options.candidates; ++i) {
    PM_ASSIGN_OR_RETURN(candidates.emplace_back(), AxesOfASample(anchors, options, bits));
  }
  return candidates;
}

// Steps by which replacing a row can move a score: one unit, a candidate whose columns are
// orthonormal up to rounding (1e-9 of it), rounding to a step (1), and sums in double. In these,
// tr V^T A V with A = X^T X adds up products x_ri x_rj v_il v_jl; each passes through n sums of A,
// d of A V and d k of the trace, in any order, and is off by (n + d + d k + 6) u of itself, up to
// terms in u^2 for which that is doubled below. Absolute values of all of them add up to at most
// sum_l |v_l|^2 sum_r |x_r|^2 = k n. k <= d, and there are two neighbours.
double SensitivityInSteps(int64_t n, int64_t d) {
  const auto rows = static_cast<double>(n);
  const auto columns = static_cast<double>(d);
  const double roundings = rows + columns + columns * columns + 6;
  const double sums = 2 * columns * rows * 2 * roundings * kUnitRoundoff;
  return std::ceil(RoundUp(kStepsPerUnit * (1 + 1e-9 + sums) + 1));
}

}  // namespace

Guarantee PublishedPpcaGuarantee(const Cost& cost) {
  return {.epsilon = cost.epsilon,
          .delta = 0,
          .neighbours = kNeighbours,
          .proven = false,
          .source =
              "Chaudhuri, Sarwate and Sinha 2013, PPCA, for an exact draw; drawn "
              "approximately: as published, not a proven guarantee"};
}

Guarantee CandidatePpcaGuarantee(const Cost& cost) {
  return {.epsilon = cost.epsilon,
          .delta = 0,
          .neighbours = kNeighbours,
          .proven = true,
          .source =
              "McSherry and Talwar 2007, exponential mechanism, over public subspaces, with the "
              "sensitivity of ppca.h"};
}

absl::StatusOr<Matrix> DrawPublishedSubspace(const Matrix& rows,
                                             const PublishedPpcaOptions& options, const Cost& cost,
                                             BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckEpsilon(cost.epsilon));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("sweeps", options.sweeps, 1, 10'000));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("gallery", rows));
  return SampleMatrixBingham(cost.epsilon / 2 * (unit.transpose() * unit), options.dimension,
                             options.sweeps, bits);
}

absl::StatusOr<BaselineResult> PublishedPpca(const DataSplit& split,
                                             const PublishedPpcaOptions& options, const Cost& cost,
                                             BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.dimension));
  PM_ASSIGN_OR_RETURN(const Matrix axes,
                      DrawPublishedSubspace(split.gallery.features, options, cost, bits));
  return Projected(split, axes, PublishedPpcaGuarantee(cost));
}

absl::StatusOr<int64_t> ChooseSubspace(const Matrix& rows, const std::vector<Matrix>& candidates,
                                       const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckBetween("epsilon", cost.epsilon, 1e-6, 1e6));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("gallery", rows));
  const Matrix moments = unit.transpose() * unit;
  std::vector<int64_t> scores;
  for (const Matrix& axes : candidates) {
    scores.push_back(std::llrint(kStepsPerUnit * axes.cwiseProduct(moments * axes).sum()));
  }
  const int64_t best = *std::max_element(scores.begin(), scores.end());
  std::vector<uint64_t> losses;
  for (const int64_t score : scores) losses.push_back(static_cast<uint64_t>(best - score));
  const double scale =
      std::ceil(RoundUp(2 * SensitivityInSteps(unit.rows(), unit.cols()) / cost.epsilon));
  return SampleExponentialMechanism(losses, static_cast<uint64_t>(scale), bits);
}

absl::StatusOr<BaselineResult> CandidatePpca(const DataSplit& split,
                                             const CandidatePpcaOptions& options, const Cost& cost,
                                             BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.dimension));
  const Matrix& anchors = split.anchors.features;
  PM_RETURN_IF_ERROR(CheckColumns("anchors", split.gallery.features.cols(), anchors.cols()));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("candidates", options.candidates, 1, 1 << 20));
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("anchors_each", options.anchors_each, options.dimension, anchors.rows()));
  PM_ASSIGN_OR_RETURN(const std::vector<Matrix> candidates, Candidates(anchors, options, bits));
  PM_ASSIGN_OR_RETURN(const int64_t chosen,
                      ChooseSubspace(split.gallery.features, candidates, cost, bits));
  return Projected(split, candidates[static_cast<size_t>(chosen)], CandidatePpcaGuarantee(cost));
}

}  // namespace privatemail::client::baselines

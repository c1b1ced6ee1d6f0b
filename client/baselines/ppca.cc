#include "client/baselines/ppca.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::baselines {
namespace {

absl::StatusOr<double> LogOfUniform(BitSource& bits) {
  constexpr uint64_t kSteps = uint64_t{1} << 53;
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> draw, SampleUniform({kSteps}, bits));
  return std::log((static_cast<double>(draw[0]) + .5) / static_cast<double>(kSteps));
}

// The width of the envelope at which most proposals are accepted: sum 1 / (width + 2 loss) = 1.
// losses: the smallest is 0. Between 1 and their number.
double EnvelopeWidth(const Vector& losses) {
  double low = 1;
  auto high = static_cast<double>(losses.size());
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    ((middle + 2 * losses.array()).inverse().sum() > 1 ? low : high) = middle;
  }
  return high;
}

// L L^T = precision of the envelope, a tridiagonal matrix: L has a diagonal and one below it.
struct EnvelopeRoot {
  Vector diagonal;
  Vector below;
};

// Of width I + 2 (largest I - T), T tridiagonal and `largest` its largest eigenvalue. No pivot of a
// matrix is smaller than its smallest eigenvalue, here the width, unless by rounding.
EnvelopeRoot RootOf(const Vector& diagonal, const Vector& below, double largest, double width) {
  EnvelopeRoot root{Vector(diagonal.size()), Vector(below.size())};
  double pivot = 0;
  for (Eigen::Index i = 0; i < diagonal.size(); ++i) {
    const double left = i == 0 ? 0 : root.below(i - 1);
    pivot = std::max(width, width + 2 * (largest - diagonal(i)) - left * left);
    root.diagonal(i) = std::sqrt(pivot);
    if (i < below.size()) root.below(i) = -2 * below(i) / root.diagonal(i);
  }
  return root;
}

// x of L^T x = y: of precision L L^T where y has precision 1.
Vector Whitened(const EnvelopeRoot& root, const Vector& y) {
  Vector x = y.cwiseQuotient(root.diagonal);
  for (Eigen::Index i = x.size() - 2; i >= 0; --i) {
    x(i) -= root.below(i) * x(i + 1) / root.diagonal(i);
  }
  return x;
}

// v T v^T of a tridiagonal T.
double QuadraticForm(const Vector& diagonal, const Vector& below, const Vector& v) {
  const Eigen::Index pairs = below.size();
  return diagonal.dot(v.cwiseAbs2()) + 2 * below.dot(v.head(pairs).cwiseProduct(v.tail(pairs)));
}

// The sphere's vector with density exp(v T v^T), T tridiagonal with these eigenvalues.
//
// With loss = largest - v T v^T the density is exp(-loss), up to a factor. Proposals are v = x /
// |x|, x normal with precision P = width I + 2 (largest I - T), whatever root of P makes x: their
// density on the sphere is (v P v^T)^(-q/2) = (width + 2 loss)^(-q/2) up to a factor. The quotient
// of both is greatest where width + 2 loss = q, so that accepting with that quotient over its
// greatest value, `highest` in logarithms, gives the law that is wanted, for any width in (0, q].
absl::StatusOr<Vector> SampleTridiagonal(const Vector& diagonal, const Vector& below,
                                         const Vector& eigenvalues, BitSource& bits) {
  const auto q = static_cast<double>(diagonal.size());
  const double largest = eigenvalues.maxCoeff();
  const double width = EnvelopeWidth(largest - eigenvalues.array());
  const EnvelopeRoot root = RootOf(diagonal, below, largest, width);
  const double highest = q / 2 * std::log(q / width) - (q - width) / 2;
  while (true) {
    PM_ASSIGN_OR_RETURN(const Matrix normal, NormalStart(diagonal.size(), 1, 1, bits));
    const Vector proposal = Whitened(root, normal.col(0));
    if (proposal.isZero(0)) continue;
    const Vector v = proposal.normalized();
    const double loss = std::max(0.0, largest - QuadraticForm(diagonal, below, v));
    PM_ASSIGN_OR_RETURN(const double limit, LogOfUniform(bits));
    if (limit < q / 2 * std::log1p(2 * loss / width) - loss - highest) return v;
  }
}

// B seen from what is orthogonal to all columns of v but one: an orthogonal matrix turns the others
// into the first axes, and this is the block of the axes after them.
class Complement {
 public:
  Complement(const Matrix& v, Eigen::Index column)
      : others_(v.cols() - 1), turn_(Others(v, column)) {}

  Eigen::MatrixXd Compressed(const Eigen::MatrixXd& b) const {
    Eigen::MatrixXd turned = b;
    turned.applyOnTheLeft(turn_.householderQ().adjoint());
    turned.applyOnTheRight(turn_.householderQ());
    return turned.bottomRightCorner(b.rows() - others_, b.cols() - others_);
  }

  Vector Embedded(const Vector& inside) const {
    Vector v = Vector::Zero(others_ + inside.size());
    v.tail(inside.size()) = inside;
    v.applyOnTheLeft(turn_.householderQ());
    return v;
  }

 private:
  static Eigen::MatrixXd Others(const Matrix& v, Eigen::Index column) {
    Eigen::MatrixXd others(v.rows(), v.cols() - 1);
    others << v.leftCols(column), v.rightCols(v.cols() - column - 1);
    return others;
  }

  Eigen::Index others_;
  Eigen::HouseholderQR<Eigen::MatrixXd> turn_;
};

constexpr double kStepsPerUnit = 0x1p20;  // of a score

constexpr char kNeighbours[] = "one gallery row replaced by any other of length 1";

BaselineResult Projected(const DataSplit& split, const Matrix& axes, Guarantee guarantee) {
  return {split.gallery.features * axes, split.targets.features * axes, std::move(guarantee)};
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

// Steps by which replacing a row can move a score, the sum of:
// - one unit;
// - 1e-9 of it: a candidate's columns are orthonormal up to rounding;
// - 1 step: rounding to a step;
// - the errors of sums in double, for two neighbours.
// Sums: tr V^T A V, A = X^T X, adds up products x_ri x_rj v_il v_jl, k <= d.
// - Each passes through n sums of A, d of A V and d k of the trace, in any order, and is off by
//   (n + d + d k + 6) u of itself; doubled below for terms in u^2.
// - Absolute values of all add up to at most sum_l |v_l|^2 sum_r |x_r|^2 = k n.
double SensitivityInSteps(int64_t n, int64_t d) {
  const auto rows = static_cast<double>(n);
  const auto columns = static_cast<double>(d);
  const double roundings = rows + columns + columns * columns + 6;
  const double sums = 2 * columns * rows * 2 * roundings * kUnitRoundoff;
  return std::ceil(RoundUp(kStepsPerUnit * (1 + 1e-9 + sums) + 1));
}

}  // namespace

absl::StatusOr<RowVector> SampleBingham(const Matrix& b, BitSource& bits) {
  // Eigenvectors would take ten times as long, and a draw turns with its matrix in any case.
  const Eigen::Tridiagonalization<Eigen::MatrixXd> turned(b);
  const Vector diagonal = turned.diagonal();
  const Vector below = turned.subDiagonal();
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  if (b.allFinite()) {
    solver.computeFromTridiagonal(diagonal, below, Eigen::EigenvaluesOnly);
  }
  if (!b.allFinite() || solver.info() != Eigen::Success) {
    return absl::InvalidArgumentError(
        "a Bingham law must have a finite matrix, but a value is not, or its eigenvalues diverge");
  }
  PM_ASSIGN_OR_RETURN(const Vector v,
                      SampleTridiagonal(diagonal, below, solver.eigenvalues(), bits));
  return RowVector((turned.matrixQ() * v).transpose());
}

absl::StatusOr<Matrix> SampleMatrixBingham(const Matrix& b, int64_t k, int64_t sweeps,
                                           BitSource& bits) {
  if (k == 1) {
    PM_ASSIGN_OR_RETURN(const RowVector v, SampleBingham(b, bits));
    return Matrix(v.transpose());
  }
  PM_ASSIGN_OR_RETURN(Matrix v, PrincipalAxes(b, k));
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    for (Eigen::Index column = 0; column < k; ++column) {
      const Complement complement(v, column);
      PM_ASSIGN_OR_RETURN(const RowVector inside, SampleBingham(complement.Compressed(b), bits));
      v.col(column) = complement.Embedded(inside.transpose());
    }
  }
  return v;
}

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

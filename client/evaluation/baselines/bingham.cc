#include "client/evaluation/baselines/bingham.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "client/evaluation/baselines/principal_axes.h"
#include "client/privacy/additive_mechanism.h"
#include "client/privacy/exact_sampling.h"
#include "common/base/status_macros.h"

namespace privatemail::baselines {
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

// The sphere's vector with density exp(-sum losses_i v_i^2).
absl::StatusOr<Vector> SampleDiagonal(const Vector& losses, BitSource& bits) {
  const auto q = static_cast<double>(losses.size());
  const double width = EnvelopeWidth(losses);
  const Vector shrink = (1 + 2 * losses.array() / width).rsqrt();
  const double highest = q / 2 * std::log(q / width) - (q - width) / 2;
  while (true) {
    PM_ASSIGN_OR_RETURN(const Matrix normal, NormalStart(losses.size(), 1, 1, bits));
    const Vector proposal = normal.col(0).cwiseProduct(shrink);
    if (proposal.isZero(0)) continue;
    const Vector v = proposal.normalized();
    const double loss = losses.dot(v.cwiseAbs2());
    PM_ASSIGN_OR_RETURN(const double limit, LogOfUniform(bits));
    if (limit < q / 2 * std::log1p(2 * loss / width) - loss - highest) return v;
  }
}

// Orthonormal columns that span what is orthogonal to all columns of v but one.
Matrix ComplementWithout(const Matrix& v, Eigen::Index column) {
  Eigen::MatrixXd others(v.rows(), v.cols() - 1);
  others << v.leftCols(column), v.rightCols(v.cols() - column - 1);
  const Eigen::MatrixXd q = Eigen::HouseholderQR<Eigen::MatrixXd>(others).householderQ();
  return q.rightCols(v.rows() - others.cols());
}

}  // namespace

absl::StatusOr<RowVector> SampleBingham(const Matrix& b, BitSource& bits) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(b);
  if (!b.allFinite() || solver.info() != Eigen::Success) {
    return absl::InvalidArgumentError(
        "a Bingham law must have a finite matrix, but a value is not, or its eigenvectors diverge");
  }
  const Vector losses = solver.eigenvalues().maxCoeff() - solver.eigenvalues().array();
  PM_ASSIGN_OR_RETURN(const Vector v, SampleDiagonal(losses, bits));
  return RowVector((solver.eigenvectors() * v).transpose());
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
      const Matrix complement = ComplementWithout(v, column);
      PM_ASSIGN_OR_RETURN(const RowVector inside,
                          SampleBingham(complement.transpose() * b * complement, bits));
      v.col(column) = complement * inside.transpose();
    }
  }
  return v;
}

}  // namespace privatemail::baselines

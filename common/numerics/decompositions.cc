#include "common/numerics/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

namespace privatemail {

SingularValueDecomposition FullSvd(const Eigen::MatrixXd& m) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {.u = svd.matrixU(), .singular_values = svd.singularValues(), .v = svd.matrixV()};
}

Eigen::VectorXd SingularValues(const Eigen::MatrixXd& m) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(m).singularValues();
}

double SpectralNormBound(const Eigen::MatrixXd& m) {
  constexpr double kUnitRoundoff = std::numeric_limits<double>::epsilon() / 2;
  if (!m.allFinite()) return std::numeric_limits<double>::infinity();
  const double scale = m.size() == 0 ? 0 : m.cwiseAbs().maxCoeff();
  if (!(scale > 0)) return 0;
  const Eigen::MatrixXd scaled = m / scale;  // so that no square underflows
  const bool wide = m.rows() < m.cols();
  const Eigen::MatrixXd gram =
      wide ? Eigen::MatrixXd(scaled * scaled.transpose()) : scaled.transpose() * scaled;
  const SymmetricEigendecomposition decomposed = DecomposeSymmetric(gram);
  if (!decomposed.converged) return std::numeric_limits<double>::infinity();
  // Rounding moves the Gram matrix by less than 2 longer u |scaled|_F^2 in norm, and its largest
  // eigenvalue is found within 100 shorter^2 u of its norm.
  const auto shorter = static_cast<double>(gram.rows());
  const auto longer = static_cast<double>(std::max(m.rows(), m.cols()));
  const double error =
      (2 * longer + 100 * shorter * shorter) * kUnitRoundoff * scaled.squaredNorm();
  return scale * std::sqrt(decomposed.eigenvalues.tail<1>()[0] + error);
}

SymmetricEigendecomposition DecomposeSymmetric(const Eigen::MatrixXd& m) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(m);
  return {.eigenvalues = solver.eigenvalues(),
          .eigenvectors = solver.eigenvectors(),
          .converged = solver.info() == Eigen::Success};
}

Eigen::MatrixXd TriangularFactor(const Eigen::MatrixXd& m) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(m);
  return qr.matrixQR().topRows(m.cols()).triangularView<Eigen::Upper>();
}

Eigen::MatrixXd Inverse(const Eigen::MatrixXd& m) {
  const Eigen::FullPivLU<Eigen::MatrixXd> lu(m);
  if (lu.isInvertible()) return lu.inverse();
  return Eigen::MatrixXd::Constant(m.rows(), m.cols(), std::numeric_limits<double>::quiet_NaN());
}

double Determinant(const Eigen::MatrixXd& m) { return m.determinant(); }

}  // namespace privatemail

#include "common/numerics/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <limits>

namespace privatemail {

SingularValueDecomposition FullSvd(const Eigen::MatrixXd& m) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {.u = svd.matrixU(), .singular_values = svd.singularValues(), .v = svd.matrixV()};
}

SingularValueDecomposition ThinLeftSvd(const Eigen::MatrixXd& m) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeThinU);
  return {.u = svd.matrixU(), .singular_values = svd.singularValues(), .v = {}};
}

Eigen::VectorXd SingularValues(const Eigen::MatrixXd& m) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(m).singularValues();
}

double SpectralNorm(const Eigen::MatrixXd& m) {
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(m);
  if (svd.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  return svd.singularValues()[0];
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

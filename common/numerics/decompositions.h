// Dense matrix decompositions, instantiated once because Eigen's templates for them compile slowly.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_DECOMPOSITIONS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_DECOMPOSITIONS_H_

#include <Eigen/Core>

namespace privatemail {

// m = u diag(singular_values) v', singular values descending.
struct SingularValueDecomposition {
  Eigen::MatrixXd u;
  Eigen::VectorXd singular_values;
  Eigen::MatrixXd v;
};

// Two-sided Jacobi iteration, for small matrices. u and v are square.
SingularValueDecomposition FullSvd(const Eigen::MatrixXd& m);
// Descending.
Eigen::VectorXd SingularValues(const Eigen::MatrixXd& m);

// At least the largest singular value in exact arithmetic, and above it by some (rows + cols)
// roundings: the root of the largest eigenvalue of the Gram matrix of the shorter side, plus a
// bound on the error of both. Infinity: a value that is not finite, or no convergence. Source:
// Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5 (the product); Golub
// and Van Loan, Matrix Computations, 2013, section 8.3.4 (the eigenvalues).
double SpectralNormBound(const Eigen::MatrixXd& m);

// Eigenvalues ascending, with the eigenvectors as columns. Only the lower triangle of m is read.
struct SymmetricEigendecomposition {
  Eigen::VectorXd eigenvalues;
  Eigen::MatrixXd eigenvectors;
  bool converged = false;
};
SymmetricEigendecomposition DecomposeSymmetric(const Eigen::MatrixXd& m);

// Upper triangle R (cols x cols) of m = Q R. rows >= cols.
Eigen::MatrixXd TriangularFactor(const Eigen::MatrixXd& m);

// The inverse of a square matrix; NaN where it is singular up to rounding.
Eigen::MatrixXd Inverse(const Eigen::MatrixXd& m);

double Determinant(const Eigen::MatrixXd& m);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_DECOMPOSITIONS_H_

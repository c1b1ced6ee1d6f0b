#include "client/baselines/principal_axes.h"

#include <Eigen/Eigenvalues>

#include "absl/status/status.h"

namespace privatemail::client::baselines {

absl::StatusOr<Matrix> PrincipalAxes(const Matrix& symmetric, int64_t count) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  if (!symmetric.allFinite() || solver.info() != Eigen::Success) {
    return absl::InvalidArgumentError(
        "a matrix must have finite values for its eigenvectors, but one is not, or they diverge");
  }
  return Matrix(solver.eigenvectors().rightCols(count).rowwise().reverse());
}

}  // namespace privatemail::client::baselines

#include "client/baselines/principal_axes.h"

#include "absl/status/status.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::baselines {

absl::StatusOr<Matrix> PrincipalAxes(const Matrix& symmetric, int64_t count) {
  const SymmetricEigendecomposition decomposition = DecomposeSymmetric(symmetric);
  if (!symmetric.allFinite() || !decomposition.converged) {
    return absl::InvalidArgumentError(
        "a matrix must have finite values for its eigenvectors, but one is not, or they diverge");
  }
  return Matrix(decomposition.eigenvectors.rightCols(count).rowwise().reverse());
}

}  // namespace privatemail::client::baselines

// Eigenvectors of a symmetric matrix, the heaviest first.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_PRINCIPAL_AXES_H_
#define PRIVATEMAIL_CLIENT_BASELINES_PRINCIPAL_AXES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail::client::baselines {

// d x count orthonormal columns: the eigenvectors of the `count` (1 to d) largest eigenvalues,
// largest first. The sign of a column is arbitrary. symmetric: d x d; its lower triangle is read.
// INVALID_ARGUMENT: a value is not finite.
absl::StatusOr<Matrix> PrincipalAxes(const Matrix& symmetric, int64_t count);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_PRINCIPAL_AXES_H_

// Matrix aliases. A row is a point.
#ifndef PRIVATEMAIL_COMMON_BASE_MATRIX_H_
#define PRIVATEMAIL_COMMON_BASE_MATRIX_H_

#include <Eigen/Core>

namespace privatemail {

// n x d, n points of d coordinates, row-major as in vector files and on the wire.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// The precision of storage and wire; computation is in double.
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// One value a row.
using Vector = Eigen::VectorXd;
// One point.
using RowVector = Eigen::RowVectorXd;

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_MATRIX_H_

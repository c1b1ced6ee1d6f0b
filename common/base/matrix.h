// The one matrix alias. Rows are points, everywhere.
#ifndef PRIVATEMAIL_COMMON_BASE_MATRIX_H_
#define PRIVATEMAIL_COMMON_BASE_MATRIX_H_

#include <Eigen/Core>

namespace privatemail {

// n x d, n points of d coordinates, row-major like a vector file and like the wire.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// The same in the precision of storage and wire. Computation happens in double.
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
// One value a row.
using Vector = Eigen::VectorXd;
// One point.
using RowVector = Eigen::RowVectorXd;

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_MATRIX_H_

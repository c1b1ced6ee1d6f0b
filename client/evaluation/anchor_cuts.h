// Other ways to cut anchors into cells than the k-means of their features, which the server makes:
// to compare them.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ANCHOR_CUTS_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ANCHOR_CUTS_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail::client {

// n x min(d, C - 1): Fisher's linear discriminant of rows (n x d) in C >= 2 classes, the directions
// in which classes differ most for how wide they are, each so scaled that classes are 1 wide in it.
// The covariance within classes is known from few rows: a tenth of its mean variance is added.
Matrix DiscriminantRows(const Matrix& rows, const std::vector<int32_t>& labels);

// A cell for each of n rows, in [0, count): of a k-means whose cells have floor(n / count) or one
// row more each. Rows are assigned in the order of how near they are to the centroids, to full
// cells no more; a heuristic, O(n count) memory.
std::vector<int64_t> BalancedCells(const FloatMatrix& rows, int64_t count);

// The mean of the features (n x d) of each cell's rows, without cells that have none: at most
// `count` x d. cells: one a row, in [0, count).
FloatMatrix MeansOfCells(const Matrix& features, const std::vector<int64_t>& cells, int64_t count);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ANCHOR_CUTS_H_

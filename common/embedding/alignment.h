// Kabsch-Umeyama: the similarity transform that best maps one cloud onto another, point by point.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// A matrix or consecutive rows of one, without a copy.
using MatrixView = Eigen::Ref<const Matrix>;

// target ~ scale * source * rotation + translation, rows are points, det(rotation) = +1.
struct Similarity {
  double scale = 1;
  Matrix rotation;        // k x k
  RowVector translation;  // k

  Matrix Apply(const MatrixView& points) const;  // n x k -> n x k
};

// Least squares over source and target (both n x k, row i belongs to row i), S. Umeyama,
// "Least-squares estimation of transformation parameters between two point patterns", 1991.
// Reflections are excluded. with_scale = false keeps scale at 1 (Kabsch). INVALID_ARGUMENT: shapes
// differ, or a value is not finite. FAILED_PRECONDITION: fewer than k + 1 points, or source or
// target points span fewer than k dimensions (collinear for k = 2), so no rotation is determined;
// the message holds the residual of the best fit.
absl::StatusOr<Similarity> KabschUmeyama(const MatrixView& source, const MatrixView& target,
                                         bool with_scale);

// sqrt(sum |map(source_i) - target_i|^2 / sum |target_i - mean target|^2): 0 is perfect, 1 no
// better than sending every point to the mean.
double RelativeResidual(const Similarity& map, const MatrixView& source, const MatrixView& target);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_

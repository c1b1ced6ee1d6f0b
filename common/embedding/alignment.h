// Least-squares alignment of point clouds by a similarity transform (Kabsch-Umeyama).
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// A view of a matrix or of consecutive rows of one.
using MatrixView = Eigen::Ref<const Matrix>;

// target ~ scale * source * rotation + translation, rows are points, det(rotation) = +1.
struct Similarity {
  double scale = 1;
  Matrix rotation;        // k x k
  RowVector translation;  // k

  Matrix Apply(const MatrixView& points) const;  // n x k -> n x k
};

// The least-squares similarity from source to target (both n x k; row i maps to row i), without
// reflections: S. Umeyama, "Least-squares estimation of transformation parameters between two point
// patterns", 1991.
// - INVALID_ARGUMENT: shapes differ, or a value is not finite.
// - FAILED_PRECONDITION: fewer than k + 1 points, or a cloud spans fewer than k dimensions
//   (collinear for k = 2), so no rotation is determined; the message holds the residual.
absl::StatusOr<Similarity> KabschUmeyama(const MatrixView& source, const MatrixView& target);

// Quantities that all alignments to one target share, computed once. Immutable and thread-safe.
class AlignmentTarget {
 public:
  // points: n x k, finite.
  explicit AlignmentTarget(Matrix points);

  const Matrix& points() const { return points_; }

  // Equals the function of this name with these points as target.
  absl::StatusOr<Similarity> KabschUmeyama(const MatrixView& source) const;
  // sqrt(sum |map(source_i) - point_i|^2 / sum |point_i - mean point|^2): 0 is a perfect fit, 1 as
  // good as mapping every point to the mean.
  double RelativeResidual(const Similarity& map, const MatrixView& source) const;

 private:
  struct Centred;

  Matrix points_;
  std::shared_ptr<const Centred> centred_;  // null: fewer than k + 1 points
  double spread_ = 0;                       // sqrt(sum |point - mean|^2)
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_ALIGNMENT_H_

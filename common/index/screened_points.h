// Points with copies in single precision, by which most of them are dismissed.
#ifndef PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_
#define PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Squared distances of the rows of `columns` (n x k) to a point (k); distances: n.
void SquaredDistances(const Eigen::VectorXf& point, const Eigen::MatrixXf& columns,
                      Eigen::ArrayXf* distances);

// n x k points, finite, of which groups are copied. The copies are centred and scaled first, so
// that a cloud far from the origin loses nothing; k floats a row and 8 bytes. Thread-safe once all
// groups are added; uses neither OpenMP nor BLAS.
class ScreenedPoints {
 public:
  // Whether the points can be copied at all: not all at one place or nearly, no sum of theirs
  // overflows.
  static bool CanHold(const Matrix& points);

  // points must be such, and outlive this.
  explicit ScreenedPoints(const Matrix& points);

  // As the copies are.
  Eigen::VectorXf Scaled(const RowVector& point) const;
  FloatMatrix Scaled() const;

  // Copies these rows, ascending, as the next group.
  void AddGroup(std::vector<int64_t> rows);
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }
  const std::vector<int64_t>& RowsOf(int64_t group) const {
    return groups_[static_cast<size_t>(group)].rows;
  }

  // Where all groups are asked for the same neighbours.
  struct Query {
    RowVector exact;
    Eigen::VectorXf scaled;
    double off = 0;  // distances between copies are off by no more, but for the last rounding
  };
  Query Prepare(const RowVector& query) const;

  // Offers all rows of a group that may be among the nearest so far. Those that are passed over are
  // certainly farther, whatever single precision has lost, so that what remains are the very rows
  // and distances a scan of the group in double would have left.
  void Scan(int64_t group, const Query& query, TopK* nearest) const;

 private:
  struct Group {
    std::vector<int64_t> rows;
    Eigen::MatrixXf copies;  // its rows x k; by columns, so that one instruction serves many points
  };

  const Matrix& points_;
  RowVector centre_;
  double scale_;
  std::vector<Group> groups_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_

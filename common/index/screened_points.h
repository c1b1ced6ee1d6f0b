// Exact search in double with a prefilter in single precision.
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

// n x k finite points with groups of float copies, which are centred and scaled so that clouds far
// from the origin keep their precision. 4 k + 8 bytes a row. Thread-safe once all groups are added;
// uses neither OpenMP nor BLAS.
class ScreenedPoints {
 public:
  // Whether float copies are possible: the points do not (nearly) coincide, and no sum overflows.
  static bool CanHold(const Matrix& points);

  // Requires CanHold(points); they must outlive this.
  explicit ScreenedPoints(const Matrix& points);

  // Centred and scaled as the copies are.
  Eigen::VectorXf Scaled(const RowVector& point) const;
  FloatMatrix Scaled() const;

  // Copies `rows` (ascending) as the next group.
  void AddGroup(std::vector<int64_t> rows);
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }
  const std::vector<int64_t>& RowsOf(int64_t group) const {
    return groups_[static_cast<size_t>(group)].rows;
  }

  // A query prepared for all groups.
  struct Query {
    RowVector exact;
    Eigen::VectorXf scaled;
    double max_error = 0;  // of distances between copies, except for the last rounding
  };
  Query Prepare(const RowVector& query) const;

  // Offers the rows of a group to `nearest`, except those that are certainly farther in spite of
  // rounding. The result has the rows and distances of a scan of the group in double.
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

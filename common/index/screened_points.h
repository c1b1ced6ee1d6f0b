// Exact search in double with a prefilter in single precision.
#ifndef PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_
#define PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Bounds of each coordinate.
struct BoundingBox {
  RowVector low;
  RowVector high;

  // Around some rows of n x k points. Around none: low is above high.
  static BoundingBox Around(const Matrix& points, const std::vector<int64_t>& rows);

  void Enclose(const BoundingBox& other);
};

// Groups of n x k finite points with float copies. The copies of a group are centred on its middle:
// small clouds far from the others and from the origin keep their precision. 4 k + 8 bytes a row.
// Thread-safe once all groups are added; uses neither OpenMP nor BLAS.
class ScreenedPoints {
 public:
  // box: around all rows that will be added. The points must outlive this.
  ScreenedPoints(const Matrix& points, const BoundingBox& box);

  // Centred and scaled so that the box is at most 2 wide; unchanged if it cannot be screened.
  RowVector Scaled(const RowVector& point) const { return (point - centre_) / scale_; }

  // Copies `rows` (ascending) as the next group. Returns the box around their Scaled points.
  BoundingBox AddGroup(std::vector<int64_t> rows);
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }
  const std::vector<int64_t>& RowsOf(int64_t group) const {
    return groups_[static_cast<size_t>(group)].rows;
  }

  // A sum in single precision and the place of its row in the group.
  using Candidate = std::pair<float, Eigen::Index>;

  // A query prepared for all groups.
  struct Query {
    RowVector exact;
    RowVector scaled;
    double width = 0;  // at least the difference of its and any point's Scaled coordinates
    // Scratch of Scan: from the middle of its group; twice that; rows that may be near.
    RowVector local = {};
    Eigen::ArrayXf twice = {};
    std::vector<Candidate> candidates = {};
  };
  Query Prepare(const RowVector& query) const;

  // A row whose Scaled point is at a larger squared distance from the query's, computed in double,
  // is farther than those found, in spite of rounding. Infinite until enough are found.
  double ScaledLimit(const Query& query, const TopK& nearest) const;

  // Offers the rows of a group to `nearest`, except those that are certainly farther in spite of
  // rounding. The result has the rows and distances of a scan of the group in double.
  void Scan(int64_t group, Query* query, TopK* nearest) const;

 private:
  // Points compared at a time: as many sums as hide the latency of an addition.
  static constexpr Eigen::Index kLanes = 32;

  struct Group {
    std::vector<int64_t> rows;
    bool coincide;     // all its points are equal
    RowVector centre;  // scaled
    double radius;     // largest length of a copy
    // kLanes x k for each kLanes rows, so that one instruction serves many points.
    Eigen::Array<float, kLanes, Eigen::Dynamic> copies;
  };

  void OfferCoincident(const Group& group, const Query& query, TopK* nearest) const;

  const Matrix& points_;
  bool screened_;
  RowVector centre_;
  double scale_;
  double rounding_;  // relative error bound of sums of squares, and what else is computed in double
  std::vector<Group> groups_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_SCREENED_POINTS_H_

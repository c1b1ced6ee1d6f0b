// Sums over rows, with the same bits for any number of cores.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_

#include "absl/functional/function_ref.h"
#include "common/base/matrix.h"

namespace privatemail {

// Rows that are read and processed at once.
inline constexpr Eigen::Index kRowBlock = 256;

// A division of n rows into groups for deterministic summation. The order of additions decides how
// a sum rounds: each group is summed by itself and the groups' sums are added in order, so results
// do not depend on the number of cores. The division depends on n alone:
// - a group is a run of whole blocks of kRowBlock rows (the last block may be shorter)
// - groups differ by at most one block
// - up to 64 groups for a million rows, 1,024 from 16.8 million rows on
class RowGroups {
 public:
  explicit RowGroups(Eigen::Index rows);  // >= 0

  Eigen::Index rows() const { return rows_; }
  Eigen::Index blocks() const { return blocks_; }
  int count() const { return count_; }

  // First block and first row of a group; for group count(), the total number.
  Eigen::Index FirstBlock(int group) const { return group * blocks_ / count_; }
  Eigen::Index FirstRow(int group) const;

 private:
  Eigen::Index rows_;
  Eigen::Index blocks_;
  int count_;  // at least 1
};

// Adds the contribution of the rows [first, first + count) to `sum`.
using RowSum = absl::FunctionRef<void(Eigen::Index first, Eigen::Index count, Vector* sum)>;

// The sum of `size` values over all rows.
Vector SumOverRows(const RowGroups& groups, Eigen::Index size, RowSum add);

// The Frobenius norm, without overflow or underflow of squares.
double NormOverRows(const Matrix& x);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_

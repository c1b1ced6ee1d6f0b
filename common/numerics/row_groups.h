// Rows cut into the groups that sums over them are made of.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_

#include "common/base/matrix.h"

namespace privatemail {

// Rows that are read and worked on at once.
inline constexpr Eigen::Index kRowBlock = 256;

// A sum rounds differently when its terms are added in another order. Where every group is added up
// by itself, and the groups' sums in their order, any number of cores and of processes gets the
// same bits: how n rows are cut into groups follows from n alone. Groups are whole blocks but for
// the last row's, and equal but for one block: one block each up to 64 groups, 64 groups up to a
// million rows, 1,024 from 16.8 million on, so that many processes can share a large collection.
class RowGroups {
 public:
  explicit RowGroups(Eigen::Index rows);  // >= 0

  Eigen::Index rows() const { return rows_; }
  Eigen::Index blocks() const { return blocks_; }
  int count() const { return count_; }

  // First block and first row of a group; of group count(), how many there are in all.
  Eigen::Index FirstBlock(int group) const { return group * blocks_ / count_; }
  Eigen::Index FirstRow(int group) const;

 private:
  Eigen::Index rows_;
  Eigen::Index blocks_;
  int count_;  // at least 1
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROW_GROUPS_H_

// Sums over rows that are split between processes, with the same bits for any number of them.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"

namespace privatemail {

// Rows that are read and processed at once.
inline constexpr Eigen::Index kRowBlock = 256;

// A division of n rows into groups for deterministic summation. The order of additions decides how
// a sum rounds: each group is summed by itself and the groups' sums are added in order, so results
// do not depend on the number of cores or processes. The division depends on n alone:
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

// Adds the contribution of the local rows [first, first + count) to `sum`.
using RowSum = absl::FunctionRef<void(Eigen::Index first, Eigen::Index count, Vector* sum)>;

// The consecutive groups of rows that one process holds ("local rows"), and reductions over the
// rows of all processes.
// - Collective: all processes call the same reductions in the same order.
// - A process that fails elsewhere calls Agree with its status before it stops; the others' next
//   reduction then returns that status.
// - Immutable; one thread of a process calls the reductions.
class RowShare {
 public:
  // The groups [first_group, end_group) of `groups`.
  RowShare(const RowGroups& groups, int first_group, int end_group)
      : groups_(groups), first_group_(first_group), end_group_(end_group) {}
  virtual ~RowShare() = default;

  const RowGroups& groups() const { return groups_; }
  int first_group() const { return first_group_; }
  int end_group() const { return end_group_; }
  Eigen::Index first_row() const { return groups_.FirstRow(first_group_); }
  Eigen::Index rows() const { return groups_.FirstRow(end_group_) - first_row(); }

  // OK if `own` is OK in every process, otherwise the status of the first process that failed.
  virtual absl::Status Agree(const absl::Status& own) const = 0;

  // Agrees on `own`, then sets `total` to the sum of all processes' vectors, added in the order of
  // their groups. of_groups: the sums of the local groups, all of the size of `total`; the process
  // with the first group may pass partial sums already added.
  virtual absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                             Vector* total) const = 0;

  // The sum of `size` values over the rows of all processes. Errors: those of AddUp.
  absl::StatusOr<Vector> Sum(Eigen::Index size, RowSum add) const;

  // The Frobenius norm of the matrix whose local rows are x, without overflow or underflow of
  // squares. Errors: those of AddUp.
  absl::StatusOr<double> Norm(const Matrix& x) const;

 private:
  const RowGroups groups_;
  const int first_group_;
  const int end_group_;
};

// The share of a single process that holds all rows. Its reductions never fail.
std::shared_ptr<const RowShare> AllRows(Eigen::Index rows);

// RowShare::Sum for a process that holds all rows.
Vector SumOverRows(const RowGroups& groups, Eigen::Index size, RowSum add);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_

// The seam between sums over rows and the processes that the rows are shared out to.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "common/numerics/row_groups.h"

namespace privatemail {

// Adds to `sum` what the rows [first, first + count) of those here contribute.
using RowSum = absl::FunctionRef<void(Eigen::Index first, Eigen::Index count, Vector* sum)>;

// The groups of rows, one after the other, that this process works on, out of all that belong
// together. A matrix "of the rows here" has a row for each, from first_row() of the whole on.
//
// Sums are for all processes to ask for together, in the same order. One that fails elsewhere
// passes its status to Agree before it ends: whatever sum the others ask for next ends with it.
// Immutable; one thread of a process asks for sums.
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

  // OK when `own` is OK in every process; otherwise the first process's that is not.
  virtual absl::Status Agree(const absl::Status& own) const = 0;

  // Agrees on `own`, and sets `total` to zero, to which the vectors of all processes are added,
  // each one's in their order, behind those of the groups before: the sums of the groups here.
  // Where the first group is, some of them may be one sum already. All have the size of `total`.
  virtual absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                             Vector* total) const = 0;

  // The sum of `size` values over all rows everywhere.
  absl::StatusOr<Vector> Sum(Eigen::Index size, RowSum add) const;

  // The Frobenius norm of the matrix whose rows here are x; neither overflows nor vanishes before
  // its values do.
  absl::StatusOr<double> Norm(const Matrix& x) const;

 private:
  const RowGroups groups_;
  const int first_group_;
  const int end_group_;
};

// The share of who has all rows, which are `rows` in number. Its sums do not fail.
std::shared_ptr<const RowShare> AllRows(Eigen::Index rows);

// What Sum would give, for all rows.
Vector SumOverRows(const RowGroups& groups, Eigen::Index size, RowSum add);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROW_SHARE_H_

#include "common/numerics/row_share.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr Eigen::Index kMinGroups = 64;
constexpr Eigen::Index kBlocksPerGroup = 64;
constexpr Eigen::Index kMaxGroups = 1024;

// Takes a Map: for parts of a vector, Eigen 3.4 asserts more alignment than they have when
// EIGEN_MAX_ALIGN_BYTES is 64.
double StableNorm(const double* values, Eigen::Index size) {
  return Eigen::Map<const Vector>(values, size).stableNorm();
}

class UnsharedRows final : public RowShare {
 public:
  explicit UnsharedRows(const RowGroups& groups) : RowShare(groups, 0, groups.count()) {}

  absl::Status Agree(const absl::Status& own) const override { return own; }

  absl::Status AddUp(const absl::Status& own, absl::Span<const Vector> of_groups,
                     Vector* total) const override {
    PM_RETURN_IF_ERROR(own);
    total->setZero();
    for (const Vector& one : of_groups) *total += one;
    return absl::OkStatus();
  }
};

}  // namespace

RowGroups::RowGroups(Eigen::Index rows) : rows_(rows), blocks_((rows + kRowBlock - 1) / kRowBlock) {
  const Eigen::Index wanted = std::clamp(blocks_ / kBlocksPerGroup, kMinGroups, kMaxGroups);
  count_ = static_cast<int>(std::clamp<Eigen::Index>(blocks_, 1, wanted));
}

Eigen::Index RowGroups::FirstRow(int group) const {
  return std::min(FirstBlock(group) * kRowBlock, rows_);
}

std::shared_ptr<const RowShare> AllRows(Eigen::Index rows) {
  return std::make_shared<UnsharedRows>(RowGroups(rows));
}

Vector SumOverRows(const RowGroups& groups, Eigen::Index size, RowSum add) {
  Vector total = Vector::Zero(size);
  Vector sum(size);
  for (int group = 0; group < groups.count(); ++group) {
    sum.setZero();
    const Eigen::Index first = groups.FirstRow(group);
    add(first, groups.FirstRow(group + 1) - first, &sum);
    total += sum;
  }
  return total;
}

absl::StatusOr<Vector> RowShare::Sum(Eigen::Index size, RowSum add) const {
  std::vector<Vector> sums;
  for (int group = first_group_; group < end_group_; ++group) {
    const Eigen::Index first = groups_.FirstRow(group);
    sums.emplace_back(Vector::Zero(size));
    add(first - first_row(), groups_.FirstRow(group + 1) - first, &sums.back());
  }
  Vector total(size);
  PM_RETURN_IF_ERROR(AddUp(absl::OkStatus(), sums, &total));
  return total;
}

absl::StatusOr<double> RowShare::Norm(const Matrix& x) const {
  // One slot for each group: adding zeros does not round.
  Vector norms = Vector::Zero(groups_.count());
  for (int group = first_group_; group < end_group_; ++group) {
    const Eigen::Index first = groups_.FirstRow(group);
    const Eigen::Index count = groups_.FirstRow(group + 1) - first;
    norms[group] = StableNorm(x.data() + (first - first_row()) * x.cols(), count * x.cols());
  }
  Vector all(norms.size());
  PM_RETURN_IF_ERROR(AddUp(absl::OkStatus(), {norms}, &all));
  return StableNorm(all.data(), all.size());
}

}  // namespace privatemail

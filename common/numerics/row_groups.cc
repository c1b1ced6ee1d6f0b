#include "common/numerics/row_groups.h"

#include <algorithm>

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

}  // namespace

RowGroups::RowGroups(Eigen::Index rows) : rows_(rows), blocks_((rows + kRowBlock - 1) / kRowBlock) {
  const Eigen::Index wanted = std::clamp(blocks_ / kBlocksPerGroup, kMinGroups, kMaxGroups);
  count_ = static_cast<int>(std::clamp<Eigen::Index>(blocks_, 1, wanted));
}

Eigen::Index RowGroups::FirstRow(int group) const {
  return std::min(FirstBlock(group) * kRowBlock, rows_);
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

double NormOverRows(const Matrix& x) {
  const RowGroups groups(x.rows());
  Vector norms(groups.count());
  for (int group = 0; group < groups.count(); ++group) {
    const Eigen::Index first = groups.FirstRow(group);
    const Eigen::Index count = groups.FirstRow(group + 1) - first;
    norms[group] = StableNorm(x.data() + first * x.cols(), count * x.cols());
  }
  return StableNorm(norms.data(), norms.size());
}

}  // namespace privatemail

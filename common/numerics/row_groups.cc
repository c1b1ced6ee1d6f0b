#include "common/numerics/row_groups.h"

#include <algorithm>

namespace privatemail {
namespace {

constexpr Eigen::Index kGroups = 64;
constexpr Eigen::Index kBlocksOfGroup = 64;
constexpr Eigen::Index kMaxGroups = 1024;

}  // namespace

RowGroups::RowGroups(Eigen::Index rows) : rows_(rows), blocks_((rows + kRowBlock - 1) / kRowBlock) {
  const Eigen::Index wanted = std::clamp(blocks_ / kBlocksOfGroup, kGroups, kMaxGroups);
  count_ = static_cast<int>(std::clamp<Eigen::Index>(blocks_, 1, wanted));
}

Eigen::Index RowGroups::FirstRow(int group) const {
  return std::min(FirstBlock(group) * kRowBlock, rows_);
}

}  // namespace privatemail

#include "common/numerics/row_source.h"

#include <gtest/gtest.h>

namespace privatemail {
namespace {

TEST(VisitBlocks, PassesEachRowOnceInOrder) {
  constexpr Eigen::Index kWide = 4096;
  const FloatMatrix rows = FloatMatrix::Random(2 * RowsOfBlock(kWide) + 3, kWide);
  Eigen::Index next = 0;
  int blocks = 0;
  ASSERT_TRUE(VisitBlocks(MatrixRows(rows), [&](Eigen::Index first, const FloatMatrix& block) {
                EXPECT_EQ(first, next);
                EXPECT_EQ(block, rows.middleRows(first, block.rows()));
                next += block.rows();
                ++blocks;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(next, rows.rows());
  EXPECT_EQ(blocks, 3);
}

}  // namespace
}  // namespace privatemail

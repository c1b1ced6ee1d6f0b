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

TEST(VisitBlocks, NoRowsAreNoBlocks) {
  EXPECT_TRUE(VisitBlocks(MatrixRows(FloatMatrix(0, 0)), [](Eigen::Index, const FloatMatrix&) {
                return absl::InternalError("not called");
              }).ok());
}

TEST(MatrixRows, ReorderedReadsRowsInThatOrder) {
  const FloatMatrix rows = FloatMatrix::Random(4, 3);
  const MatrixRows source(rows);
  const std::vector<int64_t> order = {2, 0, 3};
  const auto reordered = source.Reordered(order, {false}).value();
  FloatMatrix block(2, 3);
  ASSERT_TRUE(reordered->Read(1, block).ok());
  EXPECT_EQ(block, rows({0, 3}, Eigen::all));
}

}  // namespace
}  // namespace privatemail

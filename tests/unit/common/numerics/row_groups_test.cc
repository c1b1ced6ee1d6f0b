#include "common/numerics/row_groups.h"

#include <gtest/gtest.h>

namespace privatemail::testing {
namespace {

TEST(RowGroups, CoverAllRowsInNearlyEqualWholeBlocks) {
  for (const Eigen::Index rows :
       {1L, 255L, 256L, 257L, 16'384L, 16'385L, 100'001L, 1'000'000L, 5'000'000L, 1'000'000'000L}) {
    const RowGroups groups(rows);
    EXPECT_EQ(groups.FirstRow(0), 0);
    EXPECT_EQ(groups.FirstRow(groups.count()), rows);
    const Eigen::Index least = groups.blocks() / groups.count();
    for (int group = 0; group < groups.count(); ++group) {
      EXPECT_EQ(groups.FirstRow(group) % kRowBlock, 0) << rows;
      const Eigen::Index blocks = groups.FirstBlock(group + 1) - groups.FirstBlock(group);
      EXPECT_TRUE(blocks == least || blocks == least + 1) << blocks << " of " << rows;
    }
  }
}

// These numbers decide bits of stored coordinates: changing them makes versions disagree.
TEST(RowGroups, CountMatchesDocumentation) {
  EXPECT_EQ(RowGroups(0).count(), 1);
  EXPECT_EQ(RowGroups(256).count(), 1);
  EXPECT_EQ(RowGroups(257).count(), 2);
  EXPECT_EQ(RowGroups(64 * 256).count(), 64);
  EXPECT_EQ(RowGroups(1'000'000).count(), 64);
  EXPECT_EQ(RowGroups(2 * 64 * 64 * 256).count(), 128);
  EXPECT_EQ(RowGroups(1024 * 64 * 256).count(), 1024);
  EXPECT_EQ(RowGroups(1'000'000'000).count(), 1024);
}

TEST(NormOverRows, DoesNotOverflowOrUnderflow) {
  const Matrix ones = Matrix::Ones(900, 1);
  EXPECT_NEAR(NormOverRows(1e200 * ones), 30e200, 1e188);
  EXPECT_NEAR(NormOverRows(1e-200 * ones), 30e-200, 1e-212);
}

}  // namespace
}  // namespace privatemail::testing

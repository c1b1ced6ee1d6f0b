#include "common/numerics/row_share.h"

#include "tests/testing/matchers.h"
#include "tests/testing/threaded_rows.h"
#include "tests/unit/common/embedding/affinity_cases.h"

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

// The definition: sums of groups, added in order.
double SumByDefinition(const Matrix& x) {
  double total = 0;
  for (Eigen::Index first = 0; first < x.rows(); first += kRowBlock) {
    double sum = 0;
    for (Eigen::Index i = first; i < std::min(first + kRowBlock, x.rows()); ++i) sum += x(i, 0);
    total += sum;
  }
  return total;
}

TEST(RowShare, ReductionsHaveTheSameBitsForAnyNumberOfProcesses) {
  const Matrix x = Normal(1153, 1, 1);  // five groups of a block each
  const double norm = *AllRows(1153)->Norm(x);
  EXPECT_NEAR(norm, x.norm(), 1e-14 * norm);
  for (const int parties : {1, 2, 3, 5}) {
    ThreadedRows rows(1153, parties);
    rows.ForAll([&](int party) {
      const auto share = rows.Share(party);
      const Matrix here = x.middleRows(share->first_row(), share->rows());
      const auto sum = share->Sum(1, [&](Eigen::Index first, Eigen::Index count, Vector* to) {
        for (Eigen::Index i = first; i < first + count; ++i) (*to)[0] += here(i, 0);
      });
      ASSERT_THAT(sum, IsOk());
      EXPECT_EQ((*sum)[0], SumByDefinition(x)) << parties;
      EXPECT_EQ(*share->Norm(here), norm) << parties;
    });
  }
}

TEST(RowShare, NormDoesNotOverflowOrUnderflow) {
  const Matrix ones = Matrix::Ones(900, 1);
  EXPECT_NEAR(*AllRows(900)->Norm(1e200 * ones), 30e200, 1e188);
  EXPECT_NEAR(*AllRows(900)->Norm(1e-200 * ones), 30e-200, 1e-212);
}

}  // namespace
}  // namespace privatemail::testing

#include "common/numerics/row_share.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/testing/threaded_rows.h"
#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

// Written out: rows of a group one after the other, then the groups.
double SumByDefinition(const Matrix& x) {
  double total = 0;
  for (Eigen::Index first = 0; first < x.rows(); first += kRowBlock) {
    double sum = 0;
    for (Eigen::Index i = first; i < std::min(first + kRowBlock, x.rows()); ++i) sum += x(i, 0);
    total += sum;
  }
  return total;
}

TEST(RowShare, GivesTheSameBitsInAnyNumberOfProcesses) {
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

TEST(RowShare, TakesNormsOfWhatItsSquaresWouldNotHold) {
  const Matrix ones = Matrix::Ones(900, 1);
  EXPECT_NEAR(*AllRows(900)->Norm(1e200 * ones), 30e200, 1e188);
  EXPECT_NEAR(*AllRows(900)->Norm(1e-200 * ones), 30e-200, 1e-212);
}

}  // namespace
}  // namespace privatemail::testing

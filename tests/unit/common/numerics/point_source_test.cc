#include "common/numerics/point_source.h"

#include "common/base/validate.h"
#include "tests/unit/common/embedding/affinity_cases.h"

namespace privatemail::testing {
namespace {

TEST(UnitPoints, AnyBlockHoldsUnitRowsOfItemsThenAnchors) {
  const FloatMatrix items = (1e3 * Normal(37, 5, 1)).cast<float>();
  const FloatMatrix anchors = (1e-30 * Normal(11, 5, 2)).cast<float>();
  const auto points = UnitPoints::Create(items, anchors);
  ASSERT_TRUE(points.ok()) << points.status();
  ASSERT_EQ(points->rows(), 48);
  ASSERT_EQ(points->cols(), 5);
  Matrix expected(48, 5);
  expected << *UnitRows("items", items), *UnitRows("anchors", anchors);
  for (const int rows : {1, 7, 16, 48}) {
    for (Eigen::Index first = 0; first + rows <= 48; ++first) {
      Matrix block(rows, 5);
      ASSERT_TRUE(points->Read(first, &block).ok());
      // One rounding more: it multiplies by 1 / length.
      EXPECT_LE((block - expected.middleRows(first, rows)).cwiseAbs().maxCoeff(), 0x1p-52);
    }
  }
}

TEST(UnitPoints, ZeroOrNonFiniteRowIsRejectedByName) {
  const FloatMatrix good = FloatMatrix::Ones(3, 2);
  FloatMatrix bad = good;
  bad.row(2).setZero();
  EXPECT_EQ(UnitPoints::Create(good, bad).status().message(),
            "anchors row 2: all 2 values are zero, expected a vector with a direction");
  bad(1, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(UnitPoints::Create(bad, good).status().message(),
            "items row 1: value in column 1 is nan, expected finite values");
}

}  // namespace
}  // namespace privatemail::testing

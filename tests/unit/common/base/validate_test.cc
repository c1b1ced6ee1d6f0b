#include "common/base/validate.h"

#include <gmock/gmock.h>

#include <limits>

namespace privatemail {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Validate, NanFailsEveryCheck) {
  EXPECT_EQ(CheckFinitePositive("epsilon", kNan).message(),
            "epsilon must be finite and positive, but is nan");
  EXPECT_FALSE(CheckFiniteNonNegative("alpha", kNan).ok());
  EXPECT_FALSE(CheckOpenUnitInterval("delta", kNan).ok());
}

TEST(Validate, OpenBoundsAreExcluded) {
  EXPECT_FALSE(CheckFinitePositive("x", 0).ok());
  EXPECT_FALSE(CheckFinitePositive("x", kInfinity).ok());
  EXPECT_TRUE(CheckFinitePositive("x", std::numeric_limits<double>::denorm_min()).ok());
  EXPECT_TRUE(CheckFiniteNonNegative("x", 0).ok());
  EXPECT_FALSE(CheckOpenUnitInterval("x", 0).ok());
  EXPECT_FALSE(CheckOpenUnitInterval("x", 1).ok());
  EXPECT_TRUE(CheckOpenUnitInterval("x", .5).ok());
  EXPECT_TRUE(CheckIntegerBetween("k", 1, 1, 3).ok());
  EXPECT_EQ(CheckIntegerBetween("k", 0, 1, 3).message(), "k must be between 1 and 3, but is 0");
}

TEST(UnitRows, AnyMagnitudeScalesToLengthOne) {
  Matrix rows(3, 2);
  rows << 3, 4, 3e300, 4e300, 3e-300, 4e-300;
  const auto unit = UnitRows("rows", rows);
  ASSERT_TRUE(unit.ok()) << unit.status();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR((*unit)(i, 0), .6, 1e-15);
    EXPECT_NEAR((*unit)(i, 1), .8, 1e-15);
  }
}

TEST(UnitRows, ZeroOrNonFiniteRowIsRejectedByName) {
  FloatMatrix rows(2, 2);
  rows << 1, 0, 0, 0;
  EXPECT_THAT(UnitRows("anchors", rows).status().message(),
              HasSubstr("anchors row 1: all 2 values are zero"));
  rows(1, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(UnitRows("anchors", rows).status().message(),
            "anchors row 1: value in column 1 is nan, expected finite values");
}

}  // namespace
}  // namespace privatemail

#include "common/embedding/alignment.h"

#include <Eigen/LU>
#include <cmath>
#include <random>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

Matrix Cloud(int n, int k, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(n, k, [&] { return normal(bits); });
}

Matrix RotationByRadians(double angle) {
  Matrix r(2, 2);
  r << std::cos(angle), std::sin(angle), -std::sin(angle), std::cos(angle);
  return r;
}

TEST(Alignment, TinySourceKeepsPrecision) {
  const Matrix source = 1e-160 * Cloud(9, 2, 4);
  const Matrix target = Cloud(9, 2, 4) * RotationByRadians(2);
  const auto map = KabschUmeyama(source, target);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_NEAR(map->scale, 1e160, 1e148);
  EXPECT_LT(AlignmentTarget(target).RelativeResidual(*map, source), 1e-12);
}

TEST(Alignment, CollinearAnchorsAreRejectedWithResidual) {
  Matrix line(5, 2);
  line << 0, 0, 1, 2, 2, 4, 3, 6, 4, 8;
  EXPECT_THAT(KabschUmeyama(line, Cloud(5, 2, 5)), FailsWith(kFailedPrecondition, "residual"));
  EXPECT_FALSE(KabschUmeyama(Cloud(5, 2, 5), line).ok());
  EXPECT_FALSE(KabschUmeyama(Matrix::Zero(5, 2), Cloud(5, 2, 5)).ok());
}

// After centring only rounding is left, which spans every dimension.
TEST(Alignment, CoincidentAnchorsAreRejected) {
  const Matrix coincident = (Cloud(40, 2, 8) * 1e-16).array() + .7;
  EXPECT_FALSE(KabschUmeyama(coincident, Cloud(40, 2, 5)).ok());
  EXPECT_FALSE(KabschUmeyama(Cloud(40, 2, 5), coincident).ok());
  const Matrix small_cloud = (Cloud(40, 2, 8) * 1e-9).array() + .7;
  EXPECT_TRUE(KabschUmeyama(small_cloud, Cloud(40, 2, 5)).ok());
}

TEST(Alignment, CloudsOfOtherShapesFewPointsOrNoNumbersAreRejected) {
  Matrix nan = Cloud(5, 2, 7);
  nan(3, 1) = std::nan("");
  EXPECT_THAT(KabschUmeyama(Cloud(4, 2, 6), nan), FailsWith(kInvalid, "one shape"));
  EXPECT_THAT(KabschUmeyama(Cloud(5, 2, 6), nan), FailsWith(kInvalid, "finite"));
  EXPECT_THAT(KabschUmeyama(nan, Cloud(5, 2, 6)), FailsWith(kInvalid, "finite"));
  EXPECT_THAT(KabschUmeyama(Cloud(2, 2, 6), Cloud(2, 2, 7)),
              FailsWith(kFailedPrecondition, "at least 3"));
}

// Their sum overflows.
TEST(Alignment, HugeCoordinatesDoNotOverflow) {
  const Matrix source = 1e307 * (Matrix(Cloud(50, 2, 9).array() / 8) + Matrix::Ones(50, 2));
  const auto map = KabschUmeyama(source, source / 1e300);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_NEAR(map->scale, 1e-300, 1e-310);
  EXPECT_LT((map->rotation - Matrix::Identity(2, 2)).norm(), 1e-9);
}

TEST(Alignment, UnrepresentableScaleIsRejected) {
  EXPECT_THAT(KabschUmeyama(1e-200 * Cloud(9, 2, 4), 1e200 * Cloud(9, 2, 4)),
              FailsWith(kFailedPrecondition, "differ in size"));
}

}  // namespace
}  // namespace privatemail

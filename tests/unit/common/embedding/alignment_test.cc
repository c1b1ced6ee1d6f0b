#include "common/embedding/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <random>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

using ::testing::HasSubstr;

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

TEST(Alignment, WithoutScaleFixesScaleAtOne) {
  const Matrix source = Cloud(9, 2, 2);
  const auto map = KabschUmeyama(source, 7 * source, false);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->scale, 1);
  EXPECT_LT((map->rotation - Matrix::Identity(2, 2)).norm(), 1e-12);
}

TEST(Alignment, TinySourceKeepsPrecision) {
  const Matrix source = 1e-160 * Cloud(9, 2, 4);
  const Matrix target = Cloud(9, 2, 4) * RotationByRadians(2);
  const auto map = KabschUmeyama(source, target, true);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_NEAR(map->scale, 1e160, 1e148);
  EXPECT_LT(RelativeResidual(*map, source, target), 1e-12);
}

TEST(AlignmentTarget, AlignsAndMeasuresAsTheFunctions) {
  const Matrix source = Cloud(30, 3, 8);
  const Matrix points = Cloud(30, 3, 9);
  const AlignmentTarget target(points);
  ASSERT_OK_AND_ASSIGN(const Similarity map, target.KabschUmeyama(source, /*with_scale=*/true));
  ASSERT_OK_AND_ASSIGN(const Similarity same, KabschUmeyama(source, points, /*with_scale=*/true));
  EXPECT_EQ(map.rotation, same.rotation);
  EXPECT_EQ(map.scale, same.scale);
  EXPECT_EQ(target.RelativeResidual(map, source), RelativeResidual(map, source, points));
  EXPECT_THAT(target.KabschUmeyama(Cloud(29, 3, 8), true), FailsWith(kInvalid, "one shape"));
  EXPECT_THAT(AlignmentTarget(Cloud(3, 3, 9)).KabschUmeyama(Cloud(3, 3, 8), true),
              FailsWith(kFailedPrecondition, "at least 4"));
}

TEST(Alignment, CollinearAnchorsAreRejectedWithResidual) {
  Matrix line(5, 2);
  line << 0, 0, 1, 2, 2, 4, 3, 6, 4, 8;
  const auto map = KabschUmeyama(line, Cloud(5, 2, 5), true);
  EXPECT_EQ(map.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(map.status().message(), HasSubstr("residual"));
  EXPECT_FALSE(KabschUmeyama(Cloud(5, 2, 5), line, true).ok());
  EXPECT_FALSE(KabschUmeyama(Matrix::Zero(5, 2), Cloud(5, 2, 5), true).ok());
}

// After centring only rounding is left, which spans every dimension.
TEST(Alignment, CoincidentAnchorsAreRejected) {
  const Matrix coincident = (Cloud(40, 2, 8) * 1e-16).array() + .7;
  EXPECT_FALSE(KabschUmeyama(coincident, Cloud(40, 2, 5), true).ok());
  EXPECT_FALSE(KabschUmeyama(Cloud(40, 2, 5), coincident, true).ok());
  const Matrix small_cloud = (Cloud(40, 2, 8) * 1e-9).array() + .7;
  EXPECT_TRUE(KabschUmeyama(small_cloud, Cloud(40, 2, 5), true).ok());
}

TEST(Alignment, TooFewPointsAreRejected) {
  EXPECT_EQ(KabschUmeyama(Cloud(2, 2, 6), Cloud(2, 2, 7), true).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Alignment, DifferentShapesAreRejected) {
  EXPECT_EQ(KabschUmeyama(Cloud(4, 2, 6), Cloud(5, 2, 7), true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Their sum overflows.
TEST(Alignment, HugeCoordinatesDoNotOverflow) {
  const Matrix source = 1e307 * (Matrix(Cloud(50, 2, 9).array() / 8) + Matrix::Ones(50, 2));
  const auto map = KabschUmeyama(source, source / 1e300, true);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_NEAR(map->scale, 1e-300, 1e-310);
  EXPECT_LT((map->rotation - Matrix::Identity(2, 2)).norm(), 1e-9);
}

TEST(Alignment, UnrepresentableScaleIsRejected) {
  const auto map = KabschUmeyama(1e-200 * Cloud(9, 2, 4), 1e200 * Cloud(9, 2, 4), true);
  EXPECT_EQ(map.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace privatemail

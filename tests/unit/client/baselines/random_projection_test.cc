#include <random>

#include "client/baselines/linear_baselines.h"
#include "client/privacy/mechanisms/calibration.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

constexpr Cost kCost{.epsilon = 1, .delta = 1e-5};

// The mean of many sketches of each target, of which noise takes off less than 1e-4.
TEST(RandomProjection, SketchesAsScikitLearnsUnderVanishingNoise) {
  const Matrix projection = MatrixFrom(Golden()["random_projection"]["components"]).transpose();
  const Matrix targets = GoldenSplit().targets.features;
  constexpr Eigen::Index kCopies = 20'000;
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const NoisySketch sketch,
                       ReleaseSketch(targets.replicate(kCopies, 1), projection,
                                     {.epsilon = 1e6, .delta = .1}, bits));
  Matrix mean = Matrix::Zero(targets.rows(), projection.cols());
  for (Eigen::Index i = 0; i < kCopies; ++i) {
    mean += sketch.rows.middleRows(i * targets.rows(), targets.rows()) / kCopies;
  }
  const double tolerance = kDeviations * sketch.noise_stddev / std::sqrt(kCopies);
  EXPECT_LT(tolerance, 1e-4);
  const Matrix expected = MatrixFrom(Golden()["random_projection"]["projected"]);
  EXPECT_LE((mean - expected).cwiseAbs().maxCoeff(), tolerance);
}

TEST(RandomProjection, NoTwoTargetsLieFurtherApartThanTheSensitivity) {
  Matrix projection(3, 2);
  projection << 3, 0, 0, 4, 0, 0;
  EXPECT_NEAR(SketchSensitivity(projection), 8, 1e-7);

  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  const auto any = [&] { return normal(generator); };
  const Matrix random = Matrix::NullaryExpr(6, 2, any);
  const double bound = SketchSensitivity(random);
  double furthest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const RowVector one = RowVector::NullaryExpr(6, any).normalized();
    const RowVector other = RowVector::NullaryExpr(6, any).normalized();
    furthest = std::max(furthest, ((one - other) * random).norm());
  }
  EXPECT_LE(furthest, bound);
  EXPECT_GE(furthest, .8 * bound);
}

TEST(RandomProjection, AddsNoiseOfTheCalibratedDeviationToTargetsAlone) {
  // A gallery of the axes shows the projection.
  constexpr Eigen::Index kDim = 400;
  constexpr Eigen::Index kTargets = 4000;
  DataSplit split;
  split.gallery = Unlabelled(Matrix::Identity(kDim, kDim));
  split.targets = Unlabelled(Matrix::Identity(kDim, kDim).replicate(kTargets / kDim, 1));
  SeededBits bits(2);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result,
                       RandomProjection(split, {.dimension = 4}, kCost, bits));
  const Matrix& projection = result.gallery;
  const double entries = 4 * kDim;
  EXPECT_NEAR(projection.squaredNorm() / entries, .25, kDeviations * .25 * std::sqrt(2 / entries));
  const double stddev = SketchSensitivity(projection) * *AnalyticGaussianStddev(1, 1e-5);
  const Matrix noise = (result.targets - projection.replicate(kTargets / kDim, 1)) / stddev;
  const auto values = static_cast<double>(noise.size());
  EXPECT_NEAR(noise.squaredNorm() / values, 1, kDeviations * std::sqrt(2 / values));
  EXPECT_NEAR(noise.sum() / values, 0, kDeviations / std::sqrt(values));
}

TEST(RandomProjection, ClaimsWhatItPaysForAndSaysForWhom) {
  SeededBits bits(3);
  ASSERT_OK_AND_ASSIGN(const BaselineResult any, RandomProjection(GoldenSplit(), {}, kCost, bits));
  EXPECT_EQ(any.guarantee.epsilon, 1);
  EXPECT_TRUE(any.guarantee.proven);
  EXPECT_THAT(any.guarantee.neighbours, ::testing::HasSubstr("replaced by any others"));
  EXPECT_THAT(any.protects, ::testing::HasSubstr("each target's features"));
  EXPECT_THAT(RandomProjection(GoldenSplit(), {}, {.epsilon = 1, .delta = 0}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
}

}  // namespace
}  // namespace privatemail::client::baselines

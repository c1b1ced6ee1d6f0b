#include "client/baselines/linear_baselines.h"

#include <random>

#include "client/baselines/baseline.h"
#include "client/privacy/mechanisms/calibration.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

TEST(Pca, RanksAsScikitLearns) {
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Pca(GoldenSplit(), 2));
  ExpectSame(Distances(result.targets, result.gallery),
             MatrixFrom(Golden()["principal_components"]["pca"]));
}

TEST(PrincipalAxes, ComeHeaviestFirst) {
  const Matrix weights = RowVector{{1, 3, 2}}.asDiagonal();
  ASSERT_OK_AND_ASSIGN(const Matrix axes, PrincipalAxes(weights, 2));
  EXPECT_NEAR(std::abs(axes(1, 0)), 1, 1e-12);
  EXPECT_NEAR(std::abs(axes(2, 1)), 1, 1e-12);
  EXPECT_THAT(PrincipalAxes(Matrix::Constant(2, 2, std::nan("")), 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "finite"));
}

TEST(Split, InvalidShapeReturnsInvalidArgument) {
  DataSplit split = GoldenSplit();
  EXPECT_THAT(Pca(split, 6), FailsWith(absl::StatusCode::kInvalidArgument, "dimension"));
  split.targets.features.conservativeResize(Eigen::NoChange, 4);
  EXPECT_THAT(Pca(split, 2), FailsWith(absl::StatusCode::kInvalidArgument, "targets"));
  split.gallery.features.resize(0, 4);
  EXPECT_THAT(Pca(split, 2), FailsWith(absl::StatusCode::kInvalidArgument, "gallery"));
}

constexpr Cost kLinearCost{.epsilon = 1, .delta = 1e-5};

Matrix UnitRow(std::initializer_list<double> values) {
  Matrix row(1, static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), row.data());
  return row / row.norm();
}

double UpperTriangleMove(const Matrix& one, const Matrix& other) {
  double squares = 0;
  for (Eigen::Index i = 0; i < one.cols(); ++i) {
    for (Eigen::Index j = i; j < one.cols(); ++j) {
      squares += std::pow(one(i) * one(j) - other(i) * other(j), 2);
    }
  }
  return std::sqrt(squares);
}

// Noise that is not much of ten thousand copies.
TEST(AnalyseGauss, RanksAsScikitLearnsUnderVanishingNoise) {
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(
      const BaselineResult result,
      AnalyseGauss(GoldenSplitWithCopies(10'000), 2, {.epsilon = 1e6, .delta = .1}, bits));
  const Matrix expected = MatrixFrom(Golden()["principal_components"]["truncated_svd"]);
  const Matrix actual = Distances(result.targets, result.gallery.topRows(expected.cols()));
  EXPECT_LE((actual - expected).cwiseAbs().maxCoeff(), 1e-6);
}

TEST(AnalyseGauss, NoTwoRowsMoveTheMomentsFurtherThanTwoAxes) {
  const double bound = SecondMomentSensitivity(100, 4);
  EXPECT_LE(UpperTriangleMove(UnitRow({1, 0, 0, 0}), UnitRow({0, 1, 0, 0})), bound);
  EXPECT_NEAR(bound, std::sqrt(2.), 1e-9);
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  double furthest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto row = [&] {
      // Mostly along one axis: what moves most lies there.
      return UnitRow(
          {normal(generator) * 9, normal(generator), normal(generator) / 9, normal(generator) * 9});
    };
    furthest = std::max(furthest, UpperTriangleMove(row(), row()));
  }
  EXPECT_LE(furthest, bound);
  EXPECT_GE(furthest, .99 * bound);
}

TEST(AnalyseGauss, AddsSymmetricNoiseOfTheCalibratedDeviation) {
  const Matrix rows = GoldenSplit().gallery.features;
  const Matrix exact = rows.transpose() * rows;
  SeededBits bits(3);
  constexpr int kReleases = 4000;
  Matrix sum = Matrix::Zero(5, 5);
  Matrix squares = Matrix::Zero(5, 5);
  NoisySecondMoments noisy;
  for (int i = 0; i < kReleases; ++i) {
    ASSERT_OK_AND_ASSIGN(noisy, ReleaseSecondMoments(rows, kLinearCost, bits));
    ASSERT_EQ(noisy.moments, Matrix(noisy.moments.transpose()));
    const Matrix noise = (noisy.moments - exact) / noisy.noise_stddev;
    sum += noise;
    squares += noise.cwiseAbs2();
  }
  EXPECT_NEAR(noisy.noise_stddev, std::sqrt(2.) * *AnalyticGaussianStddev(1, 1e-5), 1e-5);
  EXPECT_LE((sum / kReleases).cwiseAbs().maxCoeff(), kDeviations / std::sqrt(kReleases));
  EXPECT_LE((squares / kReleases - Matrix::Ones(5, 5)).cwiseAbs().maxCoeff(),
            kDeviations * std::sqrt(2. / kReleases));
  // All 15 entries that are drawn, together: 3.5 %.
  const double pooled = (squares.sum() + squares.trace()) / 2 / (15 * kReleases);
  EXPECT_NEAR(pooled, 1, kDeviations * std::sqrt(2. / (15 * kReleases)));
}

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
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, RandomProjection(split, 4, kLinearCost, bits));
  const Matrix& projection = result.gallery;
  const double entries = 4 * kDim;
  EXPECT_NEAR(projection.squaredNorm() / entries, .25, kDeviations * .25 * std::sqrt(2 / entries));
  const double stddev = SketchSensitivity(projection) * *AnalyticGaussianStddev(1, 1e-5);
  const Matrix noise = (result.targets - projection.replicate(kTargets / kDim, 1)) / stddev;
  const auto values = static_cast<double>(noise.size());
  EXPECT_NEAR(noise.squaredNorm() / values, 1, kDeviations * std::sqrt(2 / values));
  EXPECT_NEAR(noise.sum() / values, 0, kDeviations / std::sqrt(values));
}

}  // namespace
}  // namespace privatemail::client::baselines

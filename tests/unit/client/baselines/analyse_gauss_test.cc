#include <random>

#include "client/baselines/linear_baselines.h"
#include "client/privacy/mechanisms/calibration.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

constexpr Cost kCost{.epsilon = 1, .delta = 1e-5};

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
  ASSERT_OK_AND_ASSIGN(const BaselineResult result,
                       AnalyseGauss(GoldenSplitWithCopies(10'000), {.dimension = 2},
                                    {.epsilon = 1e6, .delta = .1}, bits));
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
    ASSERT_OK_AND_ASSIGN(noisy, ReleaseSecondMoments(rows, kCost, bits));
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

TEST(AnalyseGauss, ClaimsWhatItPaysForAndSaysForWhom) {
  SeededBits bits(4);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, AnalyseGauss(GoldenSplit(), {}, kCost, bits));
  EXPECT_EQ(result.guarantee.epsilon, 1);
  EXPECT_EQ(result.guarantee.delta, 1e-5);
  EXPECT_TRUE(result.guarantee.proven);
  EXPECT_THAT(result.guarantee.source, ::testing::HasSubstr("Dwork, Talwar, Thakurta and Zhang"));
  EXPECT_THAT(result.guarantee.neighbours, ::testing::HasSubstr("one gallery row replaced"));
  EXPECT_THAT(result.protects, ::testing::HasSubstr("not the projected rows"));
  EXPECT_THAT(AnalyseGauss(GoldenSplit(), {}, {.epsilon = -1, .delta = .1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
}

}  // namespace
}  // namespace privatemail::client::baselines

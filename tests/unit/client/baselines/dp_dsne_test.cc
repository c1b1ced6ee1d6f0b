#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/baselines/tsne.h"
#include "client/privacy/accounting/composition.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

constexpr Cost kCost{.epsilon = 2, .delta = 1e-5};

// The mean and the mean square about it of many releases of a 1 x 2 gradient.
struct Spread {
  Matrix mean = Matrix::Zero(1, 2);
  double variance = 0;
};
constexpr int kReleases = 20'000;

Spread SpreadOf(const NoisyGradients& noise, const Matrix& gradient, const Matrix& expected) {
  SeededBits bits(1);
  Spread spread;
  for (int i = 0; i < kReleases; ++i) {
    const Matrix released = *noise.Release(gradient, bits);
    spread.mean += released / kReleases;
    spread.variance += (released - expected).squaredNorm() / (2 * kReleases);
  }
  return spread;
}

TEST(DpDsne, AGradientIsClippedAsAWholeAndNoised) {
  ASSERT_OK_AND_ASSIGN(const NoisyGradients noise,
                       NoisyGradients::Make(1, 4, 2, {.epsilon = 1e4, .delta = .1}));
  const double infinity = std::numeric_limits<double>::infinity();
  Matrix gradient(1, 2);
  Matrix expected(1, 2);
  for (const auto& [a, b, clipped_a, clipped_b] :
       std::vector<std::array<double, 4>>{{.3, -.4, .3, -.4},  // short: as it is
                                          {30, -40, .6, -.8},  // long: its direction
                                          {.9, -1.2, .6, -.8},
                                          {infinity, 1, 0, 0}}) {  // none
    gradient << a, b;
    expected << clipped_a, clipped_b;
    const Spread spread = SpreadOf(noise, gradient, expected);
    const double stddev = noise.noise_stddev();
    EXPECT_LE((spread.mean - expected).cwiseAbs().maxCoeff(),
              kDeviations * stddev / std::sqrt(kReleases));
    EXPECT_NEAR(spread.variance, stddev * stddev,
                kDeviations * stddev * stddev / std::sqrt(kReleases));
  }
}

// By Gaussian composition of the single steps, from their noise alone.
TEST(DpDsne, AllIterationsTogetherSpendTheCostAndNoMore) {
  for (const int64_t iterations : {1, 100}) {
    constexpr double kClip = .25;
    ASSERT_OK_AND_ASSIGN(const NoisyGradients noise,
                         NoisyGradients::Make(kClip, iterations, 10, kCost));
    const Guarantee step{.epsilon = kCost.epsilon,
                         .delta = kCost.delta,
                         .neighbours = noise.guarantee().neighbours,
                         .proven = true,
                         .source = "test",
                         .gaussian_mu = 2 * kClip / noise.noise_stddev()};
    ASSERT_OK_AND_ASSIGN(
        const Guarantee all,
        ComposeGaussian(std::vector<Guarantee>(static_cast<size_t>(iterations), step),
                        kCost.delta));
    EXPECT_LE(all.epsilon, kCost.epsilon);
    EXPECT_GE(all.epsilon, .9999 * kCost.epsilon);
    EXPECT_EQ(noise.guarantee().epsilon, kCost.epsilon);
    EXPECT_THAT(Validate(noise.guarantee()), IsOk());
    EXPECT_THAT(noise.guarantee().source,
                ::testing::HasSubstr(absl::StrCat("over ", iterations, " clipped gradients")));
  }
}

// One iteration at the largest epsilon moves the start against the clipped gradient of the affinity
// that scikit-learn's are compared with; a first gain is 0.8.
TEST(DpDsne, FollowsTsnesGradientUnderVanishingNoise) {
  DpDsneOptions options;
  options.tsne = {.perplexity = 8,
                  .early_iterations = 1,
                  .late_iterations = 0,
                  .learning_rate = 1,
                  .start_stddev = 1};
  const Matrix rows = JointRows(GoldenSplit());
  SeededBits bits(5);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result,
                       DpDsne(GoldenSplit(), options, {.epsilon = 1e6, .delta = .1}, bits));
  SeededBits same_bits(5);
  ASSERT_OK_AND_ASSIGN(const Matrix start, NormalStart(rows.rows(), 2, 1, same_bits));
  ASSERT_OK_AND_ASSIGN(const Matrix affinity, TsneAffinity(rows, 8));
  const Matrix gradient = TsneGradient(affinity, options.tsne.exaggeration, start);
  ASSERT_GT(gradient.norm(), options.clip);
  Matrix embedding(rows.rows(), 2);
  embedding << result.gallery, result.targets;
  const Matrix moved = (start - embedding) / (.8 * options.clip);
  EXPECT_LE((moved - gradient.normalized()).norm(), .03);
}

TEST(DpDsne, SaysWhomItTrusts) {
  DpDsneOptions options;
  options.tsne.perplexity = 8;
  SeededBits bits(6);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, DpDsne(GoldenSplit(), options, kCost, bits));
  EXPECT_TRUE(result.guarantee.proven);
  EXPECT_THAT(result.protects, ::testing::HasSubstr("not from the curator"));
  EXPECT_TRUE(result.gallery.allFinite());
}

TEST(DpDsne, WhatIsWrongIsNamed) {
  SeededBits bits(1);
  DpDsneOptions options;
  options.tsne.perplexity = 8;
  options.clip = 0;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, kCost, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "clip"));
  options.clip = 1;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, {.epsilon = std::nan(""), .delta = .1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  options.tsne.early_iterations = options.tsne.late_iterations = 0;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, kCost, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "iterations"));
}

}  // namespace
}  // namespace privatemail::client::baselines

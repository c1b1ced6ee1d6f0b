#include "client/baselines/tsne.h"

#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "common/numerics/neighbors.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

const nlohmann::json& TsneGolden() { return Golden()["tsne"]; }

GradientFn GoldenGradient() {
  return [affinity = MatrixFrom(TsneGolden()["affinity"])](
             double exaggeration, const Matrix& at) -> absl::StatusOr<Matrix> {
    return TsneGradient(affinity, exaggeration, at);
  };
}

// Scikit-learn's are in single precision and stop at 1e-5 of the entropy.
TEST(TsneAffinity, IsScikitLearns) {
  ASSERT_OK_AND_ASSIGN(const Matrix affinity,
                       TsneAffinity(JointRows(GoldenSplit()), TsneGolden()["perplexity"]));
  const Matrix expected = MatrixFrom(TsneGolden()["affinity"]);
  EXPECT_LE((affinity - expected).norm(), 1e-4 * expected.norm());
  EXPECT_EQ(affinity, Matrix(affinity.transpose()));
  EXPECT_NEAR(affinity.sum(), 1, 1e-9);
  EXPECT_EQ(affinity.diagonal().cwiseAbs().maxCoeff(), 0);
}

// Two pairs far apart: a perplexity of e^H with H the entropy of (p, (1-p)/2, (1-p)/2) gives the
// partner exactly p.
TEST(TsneAffinity, RowsHaveRequestedPerplexity) {
  Matrix rows(4, 3);
  rows << 1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 2;
  const double p = .8;
  const double entropy = -p * std::log(p) - (1 - p) * std::log((1 - p) / 2);
  // Squared distances: 0-1 and 2-3: 2; 0-2 and 1-2: 5; 0-3 and 1-3: 5.
  ASSERT_OK_AND_ASSIGN(const Matrix affinity, TsneAffinity(rows, std::exp(entropy)));
  EXPECT_NEAR(affinity(0, 1), p / 4, 1e-9);
  EXPECT_NEAR(affinity(2, 3), p / 4, 1e-9);
  EXPECT_NEAR(affinity(0, 2), (1 - p) / 8, 1e-9);
}

TEST(TsneAffinity, InvalidInputReturnsInvalidArgument) {
  EXPECT_THAT(TsneAffinity(Matrix::Identity(5, 5), 4),
              FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
  EXPECT_THAT(TsneAffinity(Matrix::Identity(5, 5), std::nan("")),
              FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
  EXPECT_THAT(TsneAffinity(Matrix::Identity(2, 2), 1.5),
              FailsWith(absl::StatusCode::kInvalidArgument, "rows to embed"));
}

TEST(Tsne, GradientIsScikitLearns) {
  const Matrix affinity = MatrixFrom(TsneGolden()["affinity"]);
  const Matrix at = MatrixFrom(TsneGolden()["at"]);
  ExpectSame(TsneGradient(affinity, 1, at), MatrixFrom(TsneGolden()["gradient"]));
  ExpectSame(TsneGradient(affinity, 12, at), MatrixFrom(TsneGolden()["exaggerated"]));
}

TEST(Tsne, DescendsAsScikitLearnInBothPhases) {
  const Matrix start = MatrixFrom(TsneGolden()["near"]);
  TsneOptions options{.early_iterations = 15,
                      .late_iterations = 0,
                      .exaggeration = 12,
                      .learning_rate = TsneGolden()["learning_rate"]};
  ASSERT_OK_AND_ASSIGN(const Matrix early, DescendTsne(start, options, GoldenGradient()));
  ExpectSame(early, MatrixFrom(TsneGolden()["early"]));
  options.late_iterations = 25;
  ASSERT_OK_AND_ASSIGN(const Matrix late, DescendTsne(start, options, GoldenGradient()));
  ExpectSame(late, MatrixFrom(TsneGolden()["late"]));
}

// Three tight groups of 15 gallery rows and 2 targets each.
TEST(Tsne, PutsTargetsAmongTheirOwn) {
  DataSplit split;
  split.gallery = Unlabelled(Matrix::Identity(3, 3).replicate(15, 1));
  split.targets = Unlabelled(Matrix::Identity(3, 3).replicate(2, 1));
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const Matrix jitter, NormalStart(51, 3, .05, bits));
  split.gallery.features += jitter.topRows(45);
  split.targets.features += jitter.bottomRows(6);
  ASSERT_OK_AND_ASSIGN(const BaselineResult result, Tsne(split, {.perplexity = 8}, bits));
  ASSERT_EQ(result.gallery.rows(), 45);
  const auto nearest = NearestRows(result.targets, result.gallery, 10);
  for (size_t target = 0; target < nearest.size(); ++target) {
    for (const Neighbor& neighbor : nearest[target]) {
      EXPECT_EQ(neighbor.row % 3, static_cast<int64_t>(target % 3));
    }
  }
}

TEST(Tsne, InvalidOptionReturnsInvalidArgument) {
  SeededBits bits(1);
  for (const auto& [options, field] : std::vector<std::pair<TsneOptions, std::string>>{
           {{.perplexity = 29}, "perplexity"},
           {{.early_iterations = -1}, "early_iterations"},
           {{.late_iterations = 100'001}, "late_iterations"},
           {{.exaggeration = std::nan("")}, "exaggeration"},
           {{.learning_rate = -1}, "learning_rate"},
           {{.start_stddev = 0}, "start_stddev"},
           {{.dimension = 6}, "dimension"}}) {
    EXPECT_THAT(Tsne(GoldenSplit(), options, bits),
                FailsWith(absl::StatusCode::kInvalidArgument, field));
  }
  EXPECT_THAT(CheckTsne({}, kMaxTsneRows + 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "rows to embed"));
}

TEST(LastTsneAffinity, RepeatedRowsAndPerplexityAreComputedOnce) {
  const Matrix rows = GoldenSplit().gallery.features;
  const Matrix others = rows.colwise().reverse();
  LastTsneAffinity last;
  ASSERT_OK_AND_ASSIGN(const auto first, last.Of(rows, 5));
  EXPECT_EQ(*last.Of(rows, 5), first);
  EXPECT_EQ(*first, *TsneAffinity(rows, 5));
  EXPECT_EQ(**last.Of(others, 5), *TsneAffinity(others, 5));
  EXPECT_EQ(**last.Of(others, 6), *TsneAffinity(others, 6));
  EXPECT_THAT(last.Of(rows, 0), FailsWith(absl::StatusCode::kInvalidArgument, "perplexity"));
}

constexpr Cost kTsneCost{.epsilon = 2, .delta = 1e-5};

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
                         NoisyGradients::Make(kClip, iterations, 10, kTsneCost));
    const double mu = std::sqrt(static_cast<double>(iterations)) * 2 * kClip / noise.noise_stddev();
    ASSERT_OK_AND_ASSIGN(const double epsilon, GaussianEpsilon(mu, kTsneCost.delta));
    EXPECT_LE(epsilon, kTsneCost.epsilon);
    EXPECT_GE(epsilon, .9999 * kTsneCost.epsilon);
    EXPECT_EQ(noise.guarantee().epsilon, kTsneCost.epsilon);
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

TEST(DpDsne, InvalidOptionReturnsInvalidArgument) {
  SeededBits bits(1);
  DpDsneOptions options;
  options.tsne.perplexity = 8;
  options.clip = 0;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, kTsneCost, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "clip"));
  options.clip = 1;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, {.epsilon = std::nan(""), .delta = .1}, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  options.tsne.early_iterations = options.tsne.late_iterations = 0;
  EXPECT_THAT(DpDsne(GoldenSplit(), options, kTsneCost, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "iterations"));
}

}  // namespace
}  // namespace privatemail::client::baselines

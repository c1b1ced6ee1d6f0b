#include "client/evaluation/metrics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

TEST(Metrics, CountTheClassAndTheOverlap) {
  const std::vector<int32_t> labels = {1, 1, 2, 2, 3};
  const Scores scores = ScoreOf({0, 2, 4, 1}, labels, 1, {1, 3, 4, 2});
  EXPECT_DOUBLE_EQ(scores.class_share, .5);
  EXPECT_DOUBLE_EQ(scores.hit, 1);
  EXPECT_DOUBLE_EQ(scores.fidelity, .75);
  EXPECT_DOUBLE_EQ(ScoreOf({2, 0}, labels, 1, {0, 1}).hit, 1);  // one is enough
  EXPECT_DOUBLE_EQ(ScoreOf({2, 4}, labels, 1, {0, 1}).class_share, 0);
  EXPECT_DOUBLE_EQ(ScoreOf({2, 4}, labels, 1, {0, 1}).hit, 0);
  EXPECT_DOUBLE_EQ(ScoreOf({2, 4}, labels, 1, {0, 1}).fidelity, 0);
}

// By counting all pairs: of the 10 pairs of 5 rows, 7 have one of the two rows of class 1.
TEST(Metrics, ChanceIsTheShareOfAllAnswers) {
  const Scores chance = ScoresByChance({1, 1, 2, 2, 3}, 1, 2);
  EXPECT_DOUBLE_EQ(chance.class_share, .4);
  EXPECT_DOUBLE_EQ(chance.hit, .7);
  EXPECT_DOUBLE_EQ(chance.fidelity, .4);
  EXPECT_DOUBLE_EQ(ScoresByChance({1, 1, 2}, 1, 2).hit, 1);
}

TEST(Bands, OfOneSplitHaveTheWidthOfTheStandardError) {
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back((i + .5) / 400);
  const Band band = BandOfScores({values}, 1);
  EXPECT_NEAR(band.mean, .5, 1e-12);
  // 1.96 standard errors of the mean of 400 uniform values; each end of 1,000 samples varies by a
  // 25th of that.
  EXPECT_NEAR(band.high - band.low, 2 * 1.96 * std::sqrt(1 / 12.) / 20, .007);
  EXPECT_EQ(BandOfScores({values}, 1).low, band.low);
  EXPECT_NE(BandOfScores({values}, 2).low, band.low);
}

// The table of Student's t: 4.3027 for 2 degrees of freedom, 12.7062 for 1.
TEST(Bands, OfSeveralSplitsAreStudentsAndKeepWithinTheRange) {
  const Band three = BandOfScores({{.4, .4}, {.5, .5}, {.5, .7}}, 1);
  EXPECT_NEAR(three.mean, .5, 1e-12);
  EXPECT_NEAR(three.low, .5 - 4.3027 * .1 / std::sqrt(3), 1e-4);
  EXPECT_NEAR(three.high, .5 + 4.3027 * .1 / std::sqrt(3), 1e-4);
  const Band two = BandOfScores({{.49}, {.51}}, 1);
  EXPECT_NEAR(two.high - two.mean, 12.7062 * .01, 1e-5);
  const Band wide = BandOfScores({{.2, 0}, {1, .8}}, 1);
  EXPECT_DOUBLE_EQ(wide.low, 0);
  EXPECT_DOUBLE_EQ(wide.high, 1);
}

// 40 answers, none of which differs. Of one split: as wide as with one that does, 39 of 40, whose
// bootstrap samples miss 1 on average and up to 3. Of two: by Student's t for means of .95 and 1,
// 12.7062 standard errors of .025 below .975.
TEST(Bands, OfScoresThatAreAllAlikeAreNoPoints) {
  for (const int64_t splits : {1, 2}) {
    const double end = splits == 1 ? 37 / 40. : .975 - 12.70620474 * .025;
    const auto all = [&](double score) {
      return std::vector<std::vector<double>>(
          static_cast<size_t>(splits),
          std::vector<double>(40 / static_cast<size_t>(splits), score));
    };
    const Band ones = BandOfScores(all(1), 1);
    EXPECT_DOUBLE_EQ(ones.mean, 1);
    EXPECT_NEAR(ones.low, end, 1e-9);
    EXPECT_DOUBLE_EQ(ones.high, 1);
    const Band zeros = BandOfScores(all(0), 1);
    EXPECT_DOUBLE_EQ(zeros.low, 0);
    EXPECT_NEAR(zeros.high, 1 - end, 1e-9);
    // Never narrower than that of a score that is nearly the same.
    auto nearly = all(1);
    nearly.back().back() = 0;
    EXPECT_LE(ones.low, BandOfScores(nearly, 1).low + 1e-9);
  }
  const Band of_one_target = BandOfScores({{1}}, 1);
  EXPECT_DOUBLE_EQ(of_one_target.low, 0);
  EXPECT_DOUBLE_EQ(of_one_target.high, 1);
  // Splits whose means happen to be equal have targets that differ.
  const Band equal = BandOfScores({{0, 1, 1, 1}, {1, 1, 0, 1}}, 1);
  EXPECT_LT(equal.low, .75);
  EXPECT_GT(equal.high, .75);
}

// Splits with a chance of their own, normal about .5 with `spread`, and 100 targets that hit with
// it. 2,000 bands: a rate of .95 has a standard deviation of .005, so that .02 is four of them.
double Coverage(int splits, double spread) {
  constexpr int kBands = 2000;
  std::mt19937_64 bits(static_cast<uint64_t>(splits) * 1000 + static_cast<uint64_t>(100 * spread));
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  int covered = 0;
  for (int i = 0; i < kBands; ++i) {
    std::vector<std::vector<double>> values(static_cast<size_t>(splits));
    for (std::vector<double>& split : values) {
      const double chance = std::clamp(.5 + spread * normal(bits), 0., 1.);
      for (int j = 0; j < 100; ++j) split.push_back(uniform(bits) < chance ? 1 : 0);
    }
    const Band band = BandOfScores(values, static_cast<uint64_t>(i));
    covered += band.low <= .5 && .5 <= band.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kBands;
}

TEST(Bands, CoverTheMeanOfAllSplitsInNineteenOfTwentyCases) {
  EXPECT_NEAR(Coverage(5, .2), .95, .02);
  EXPECT_NEAR(Coverage(2, .2), .95, .02);
  EXPECT_NEAR(Coverage(5, 0), .95, .02);
  EXPECT_NEAR(Coverage(3, .05), .95, .02);
  EXPECT_NEAR(Coverage(1, 0), .95, .02);
}

// Parts 1 and 3, wholes 2 and 4: means 2 and 3, variances and covariance 2, and t(1) is 12.7:
// wholes may be 0. 30 times the same: t(59)^2 / 60 = 2.0010^2 / 60 = .066733, variances and
// covariance are 60/59, so that 8.93214 r^2 - 2 * 5.93214 r + 3.93214 <= 0.
TEST(Bands, OfRatiosAreFiellers) {
  EXPECT_EQ(BandOfRatio({1, 3}, {2, 4}), std::nullopt);
  EXPECT_EQ(BandOfRatio({1}, {2}), std::nullopt);
  EXPECT_EQ(BandOfRatio({1, 2, 3}, {-2, -2.1, -1.9}), std::nullopt);
  std::vector<double> parts;
  std::vector<double> wholes;
  for (int i = 0; i < 30; ++i) {
    parts.insert(parts.end(), {1, 3});
    wholes.insert(wholes.end(), {2, 4});
  }
  const std::optional<Band> band = BandOfRatio(parts, wholes);
  ASSERT_TRUE(band.has_value());
  EXPECT_NEAR(band->mean, 2 / 3., 1e-12);
  EXPECT_NEAR(band->low, .634969, 1e-5);
  EXPECT_NEAR(band->high, .693299, 1e-5);
}

// scipy.stats.t.ppf(.975, 3) = 3.182446305284263, of differences .1, .2, .3, .2: mean .2,
// deviation .0816497.
TEST(Bands, OfDifferencesArePaired) {
  const std::optional<Band> band =
      BandOfDifference({.5, .9, .4, .7}, {.4, .7, .1, .5}, /*certainty=*/.95);
  ASSERT_TRUE(band.has_value());
  EXPECT_NEAR(band->mean, .2, 1e-12);
  EXPECT_NEAR(band->high - band->mean, 3.182446305284263 * .0816496580927726 / 2, 1e-9);
  EXPECT_NEAR(band->mean - band->low, band->high - band->mean, 1e-12);
  EXPECT_GT(BandOfDifference({.5, .9, .4, .7}, {.4, .7, .1, .5}, .99)->high, band->high);
  EXPECT_FALSE(BandOfDifference({.5}, {.4}, .95).has_value());
  EXPECT_FALSE(BandOfDifference({.5, .6}, {.4, .5}, .95).has_value());
}

}  // namespace
}  // namespace privatemail::client

#include "client/evaluation/metrics.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail {
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

TEST(Metrics, TheCeilingIsThatOfRandomisedResponse) {
  // C-ary randomised response reaches the ceiling of one class.
  EXPECT_NEAR(ScoreCeilings(1, 0, 100, 8).class_share, std::exp(1) / (std::exp(1) + 99), 1e-15);
  EXPECT_NEAR(ScoreCeilings(1, .01, 100, 8).class_share, (std::exp(1) + .99) / (std::exp(1) + 99),
              1e-15);
  // Subset selection that of several.
  EXPECT_NEAR(ScoreCeilings(1, 0, 100, 8).hit, 8 * std::exp(1) / (8 * std::exp(1) + 92), 1e-15);
  EXPECT_DOUBLE_EQ(ScoreCeilings(0, 0, 100, 8).hit, .08);
  EXPECT_DOUBLE_EQ(ScoreCeilings(2000, 0, 100, 8).class_share, 1);
  EXPECT_DOUBLE_EQ(ScoreCeilings(1, 0, 5, 8).hit, 1);
}

TEST(Metrics, NearestAreByDistance) {
  Matrix points(3, 1);
  points << 0, 5, 1;
  Matrix queries(1, 1);
  queries << 4;
  EXPECT_THAT(NearestOf(queries, points, 2), testing::ElementsAre(testing::ElementsAre(1, 2)));
}

TEST(Bootstrap, HasTheWidthOfTheStandardError) {
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back((i + .5) / 400);
  const Band band = BootstrapBand({values}, 1);
  EXPECT_NEAR(band.mean, .5, 1e-12);
  // 1.96 standard errors of the mean of 400 uniform values; each end of 1,000 samples varies by a
  // 25th of that.
  EXPECT_NEAR(band.high - band.low, 2 * 1.96 * std::sqrt(1 / 12.) / 20, .007);
  EXPECT_EQ(BootstrapBand({values}, 1).low, band.low);
  EXPECT_NE(BootstrapBand({values}, 2).low, band.low);
}

TEST(Bootstrap, CoversWhatDiffersBetweenSeeds) {
  const std::vector<double> zeros(100, 0);
  const std::vector<double> ones(100, 1);
  const Band band = BootstrapBand({zeros, ones}, 1);
  EXPECT_DOUBLE_EQ(band.low, 0);  // one in four samples has one seed twice
  EXPECT_DOUBLE_EQ(band.high, 1);
}

}  // namespace
}  // namespace privatemail

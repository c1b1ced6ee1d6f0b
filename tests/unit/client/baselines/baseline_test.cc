#include "client/baselines/baseline.h"

#include "client/baselines/all_baselines.h"
#include "tests/unit/client/baselines/baselines_fixture.h"

namespace privatemail::client::baselines {
namespace {

constexpr Cost kCost{.epsilon = 2, .delta = 1e-5};

Settings SmallSettings() {
  Settings settings = Settings::OfDimension(3);
  settings.candidate_ppca.anchors_each = 10;
  settings.tsne = {.dimension = 3, .perplexity = 8, .early_iterations = 5, .late_iterations = 5};
  settings.dp_dsne.tsne = settings.tsne;
  return settings;
}

BaselineResult ResultOf(const Baseline& baseline, uint64_t seed, const Cost& cost) {
  SeededBits bits(seed);
  absl::StatusOr<BaselineResult> result = baseline.run(GoldenSplit(), SmallSettings(), cost, bits);
  EXPECT_THAT(result, IsOk()) << baseline.name;
  return *std::move(result);
}

bool DrawsBits(const Baseline& baseline) { return std::string(baseline.name) != "pca"; }

class EveryBaseline : public ::testing::TestWithParam<Baseline> {};

TEST_P(EveryBaseline, GivesARowForEachRow) {
  const BaselineResult result = ResultOf(GetParam(), 1, kCost);
  EXPECT_EQ(result.gallery.rows(), 24);
  EXPECT_EQ(result.targets.rows(), 6);
  EXPECT_EQ(result.gallery.cols(), result.targets.cols());
  EXPECT_TRUE(result.gallery.allFinite() && result.targets.allFinite());
  EXPECT_NE(result.guarantee.neighbours, "");
}

TEST_P(EveryBaseline, ClaimsTheCostWhereItTakesOne) {
  const Guarantee guarantee = ResultOf(GetParam(), 1, kCost).guarantee;
  const std::string name = GetParam().name;
  EXPECT_EQ(guarantee.proven, name.find("published") == std::string::npos);
  if (!GetParam().takes_epsilon) {
    EXPECT_TRUE(std::isinf(guarantee.epsilon));
    return;
  }
  EXPECT_EQ(guarantee.epsilon, kCost.epsilon);
  EXPECT_TRUE(guarantee.delta == 0 || guarantee.delta == kCost.delta);
  EXPECT_THAT(Validate(guarantee), IsOk());
}

TEST_P(EveryBaseline, DependsOnEpsilonAsItsEntrySaysAndOnBits) {
  const Matrix rows = ResultOf(GetParam(), 1, kCost).targets;
  EXPECT_EQ(ResultOf(GetParam(), 1, kCost).targets, rows);
  EXPECT_EQ(ResultOf(GetParam(), 2, kCost).targets != rows, DrawsBits(GetParam()));
  if (!GetParam().takes_epsilon) {
    EXPECT_EQ(ResultOf(GetParam(), 1, {.epsilon = .1, .delta = .1}).targets, rows);
  }
}

TEST_P(EveryBaseline, FailsWithItsBitsAndWithAWrongCost) {
  FailingBits none(0);
  const auto result = GetParam().run(GoldenSplit(), SmallSettings(), kCost, none);
  if (DrawsBits(GetParam())) {
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kUnavailable, "no bits"));
  } else {
    EXPECT_THAT(result, IsOk());
  }
  SeededBits bits(1);
  const Cost wrong{.epsilon = std::nan(""), .delta = kCost.delta};
  const auto refused = GetParam().run(GoldenSplit(), SmallSettings(), wrong, bits);
  if (GetParam().takes_epsilon) {
    EXPECT_THAT(refused, FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EveryBaseline, ::testing::ValuesIn(AllBaselines()),
                         [](const auto& param_info) {
                           std::string name = param_info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Baselines, HaveOneDimensionWhenAskedFor) {
  const Settings settings = Settings::OfDimension(3);
  for (const Baseline& baseline : AllBaselines()) {
    EXPECT_EQ(ResultOf(baseline, 1, kCost).gallery.cols(), 3) << baseline.name;
  }
  EXPECT_EQ(settings.dp_dsne.tsne.dimension, 3);
}

// How often subset selection hits, by counting: of all sets of k classes, one that has the
// target's is e^epsilon times as likely as one that has not.
double SubsetSelectionHits(double epsilon, int classes, int k) {
  double with = 0;
  double without = 0;
  for (int set = 0; set < 1 << classes; ++set) {
    if (__builtin_popcount(static_cast<unsigned>(set)) != k) continue;
    (set & 1 ? with : without) += set & 1 ? std::exp(epsilon) : 1;
  }
  return with / (with + without);
}

TEST(LabelHidingCeiling, IsReachedBySubsetSelectionAtEveryK) {
  for (const int k : {1, 2, 5, 9}) {
    for (const double epsilon : {.1, 1., 4.}) {
      ASSERT_OK_AND_ASSIGN(const double ceiling, LabelHidingCeiling({epsilon, 0}, 10, k));
      ExpectSame(ceiling, SubsetSelectionHits(epsilon, 10, k));
    }
  }
}

// Says the class outright with probability delta, and otherwise selects a subset.
double HitsWithDelta(double delta, int k) {
  return delta + (1 - delta) * SubsetSelectionHits(1, 10, k);
}

TEST(LabelHidingCeiling, IsReachedAtOneByWhoSaysTheClassWithProbabilityDelta) {
  ASSERT_OK_AND_ASSIGN(const double ceiling, LabelHidingCeiling({1, .05}, 10, 1));
  ExpectSame(ceiling, HitsWithDelta(.05, 1));
}

TEST(LabelHidingCeiling, IsNotPassedAtThreeByWhoSaysTheClassWithProbabilityDelta) {
  ASSERT_OK_AND_ASSIGN(const double ceiling, LabelHidingCeiling({1, .05}, 10, 3));
  EXPECT_LT(HitsWithDelta(.05, 3), ceiling);
}

TEST(LabelHidingCeiling, IsOneWhereAllClassesAreAnsweredOrNothingIsHidden) {
  EXPECT_EQ(*LabelHidingCeiling({0, 0}, 10, 10), 1);
  EXPECT_EQ(*LabelHidingCeiling({1e6, 0}, 10, 1), 1);
  EXPECT_NEAR(*LabelHidingCeiling({0, .99}, 10, 1), .1 + .99 * .9, 1e-15);
}

TEST(LabelHidingCeiling, InvalidInputReturnsInvalidArgument) {
  EXPECT_THAT(LabelHidingCeiling({std::nan(""), 0}, 10, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  EXPECT_THAT(LabelHidingCeiling({1, std::nan("")}, 10, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
  EXPECT_THAT(LabelHidingCeiling({1, 0}, 1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "classes"));
  EXPECT_THAT(LabelHidingCeiling({1, 0}, 10, 0),
              FailsWith(absl::StatusCode::kInvalidArgument, "k"));
}

TEST(LabelHidingCeiling, OverTargetsOfEqualClassesIsTheSame) {
  for (const double epsilon : {0., .5, 3., 800.}) {
    for (const double delta : {0., 1e-5, .05}) {
      EXPECT_NEAR(*LabelHidingCeilingOverTargets({epsilon, delta}, 10, .1),
                  *LabelHidingCeiling({epsilon, delta}, 10, 1), 1e-12);
    }
  }
  EXPECT_DOUBLE_EQ(*LabelHidingCeilingOverTargets({0, 0}, 10, .7), .7) << "the guess";
  EXPECT_EQ(*LabelHidingCeilingOverTargets({0, 0}, 10, 1), 1);
}

// All answers of two classes that a release of (epsilon, delta) allows, on a grid.
TEST(LabelHidingCeiling, OverTargetsIsPassedByNoAnswerThatIsAllowed) {
  constexpr int kSteps = 200;
  for (const double epsilon : {0., .3, 1., 3.}) {
    for (const double delta : {0., .1}) {
      for (const double largest : {.5, .7, .9}) {
        const double ceiling = *LabelHidingCeilingOverTargets({epsilon, delta}, 2, largest);
        double best = 0;
        for (int i = 0; i <= kSteps; ++i) {
          for (int j = 0; j <= kSteps; ++j) {
            // Of naming the larger class, for a target of it and for one of the other.
            const double one = static_cast<double>(i) / kSteps;
            const double other = static_cast<double>(j) / kSteps;
            const double reach = std::exp(epsilon);
            if (one > reach * other + delta || other > reach * one + delta ||
                1 - one > reach * (1 - other) + delta || 1 - other > reach * (1 - one) + delta) {
              continue;
            }
            best = std::max(best, largest * one + (1 - largest) * (1 - other));
          }
        }
        EXPECT_LE(best, ceiling + 1e-12) << epsilon << " " << delta << " " << largest;
        EXPECT_GE(best, largest);
      }
    }
  }
}

TEST(LabelHidingCeiling, OverTargetsNeedsAShareThatCanBeTheLargest) {
  EXPECT_THAT(
      LabelHidingCeilingOverTargets({1, 0}, 10, .09),
      FailsWith(absl::StatusCode::kInvalidArgument, "largest must be at least 1 / classes"));
  EXPECT_FALSE(LabelHidingCeilingOverTargets({1, 0}, 10, 1.01).ok());
  EXPECT_FALSE(LabelHidingCeilingOverTargets({1, 0}, 10, std::nan("")).ok());
}

}  // namespace
}  // namespace privatemail::client::baselines

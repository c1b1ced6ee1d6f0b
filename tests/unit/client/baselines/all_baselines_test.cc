// What holds for every baseline alike.
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

class EveryBaseline : public ::testing::TestWithParam<Baseline> {};

TEST_P(EveryBaseline, GivesARowForEachRowAndSaysWhatItProtects) {
  const BaselineResult result = ResultOf(GetParam(), 1, kCost);
  EXPECT_EQ(result.gallery.rows(), 24);
  EXPECT_EQ(result.targets.rows(), 6);
  EXPECT_EQ(result.gallery.cols(), result.targets.cols());
  EXPECT_TRUE(result.gallery.allFinite() && result.targets.allFinite());
  EXPECT_NE(result.protects, "");
  EXPECT_EQ(result.protects, GetParam().protects);
  EXPECT_NE(result.guarantee.neighbours, "");
}

TEST_P(EveryBaseline, ClaimsTheCostWhereItTakesOne) {
  const Guarantee guarantee = ResultOf(GetParam(), 1, kCost).guarantee;
  const std::string name = GetParam().name;
  EXPECT_EQ(guarantee.proven, name.find("published") == std::string::npos);
  if (!GetParam().takes_epsilon) {
    EXPECT_TRUE(std::isinf(guarantee.epsilon) || guarantee.epsilon == 0);
    return;
  }
  EXPECT_EQ(guarantee.epsilon, kCost.epsilon);
  EXPECT_TRUE(guarantee.delta == 0 || guarantee.delta == kCost.delta);
  EXPECT_THAT(Validate(guarantee), IsOk());
}

TEST_P(EveryBaseline, DependsOnEpsilonAndBitsAsItsEntrySays) {
  const Matrix rows = ResultOf(GetParam(), 1, kCost).targets;
  EXPECT_EQ(ResultOf(GetParam(), 1, kCost).targets, rows);
  EXPECT_EQ(ResultOf(GetParam(), 2, kCost).targets != rows, GetParam().draws_bits);
  if (!GetParam().takes_epsilon) {
    EXPECT_EQ(ResultOf(GetParam(), 1, {.epsilon = .1, .delta = .1}).targets, rows);
  }
}

TEST_P(EveryBaseline, FailsWithItsBitsAndWithAWrongCost) {
  FailingBits none(0);
  const auto result = GetParam().run(GoldenSplit(), SmallSettings(), kCost, none);
  if (GetParam().draws_bits) {
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

TEST_P(EveryBaseline, IsFoundByItsName) {
  ASSERT_OK_AND_ASSIGN(const Baseline* found, BaselineFromName(GetParam().name));
  EXPECT_EQ(found->run, GetParam().run);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryBaseline, ::testing::ValuesIn(AllBaselines()),
                         [](const auto& param_info) {
                           std::string name = param_info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Baselines, OfAnotherNameAreRefusedWithAllNames) {
  EXPECT_THAT(BaselineFromName("umap"),
              FailsWith(absl::StatusCode::kInvalidArgument, "analyse-gauss, published-ppca"));
}

TEST(Baselines, HaveOneDimensionWhenAskedFor) {
  const Settings settings = Settings::OfDimension(3);
  for (const Baseline& baseline : AllBaselines()) {
    const std::string name = baseline.name;
    if (name == "features" || name == "random-guess") continue;
    EXPECT_EQ(ResultOf(baseline, 1, kCost).gallery.cols(), 3) << name;
  }
  EXPECT_EQ(settings.dp_dsne.tsne.dimension, 3);
}

}  // namespace
}  // namespace privatemail::client::baselines

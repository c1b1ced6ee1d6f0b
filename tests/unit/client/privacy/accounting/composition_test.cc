#include "client/privacy/accounting/composition.h"

#include <cmath>
#include <vector>

#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

// A sum that is not below the exact one, and hardly above.
void ExpectRoundedUp(double sum, double exact) {
  EXPECT_GE(sum, exact);
  EXPECT_LE(sum, exact * (1 + 1e-14));
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Guarantee Dp(double epsilon, double delta, std::string source = "test") {
  return {.epsilon = epsilon,
          .delta = delta,
          .neighbours = "any two",
          .proven = true,
          .source = std::move(source)};
}

Guarantee Within(double radius, double epsilon, double delta) {
  Guarantee guarantee = Dp(epsilon, delta);
  guarantee.radius = radius;
  guarantee.metric = "l2";
  return guarantee;
}

Guarantee Gaussian(double mu) {
  Guarantee guarantee = Dp(*GaussianEpsilon(mu, 1e-6), 1e-6);
  guarantee.gaussian_mu = mu;
  return guarantee;
}

TEST(PostProcessing, ChangesNothing) { EXPECT_EQ(AfterPostProcessing(Gaussian(.3)), Gaussian(.3)); }

TEST(BasicComposition, AddsAndTakesTheSmallestRadius) {
  ASSERT_OK_AND_ASSIGN(
      const Guarantee all,
      ComposeBasic({Within(.5, .25, 1e-6), Within(.25, .5, 2e-6), Within(1, .125, 0)}));
  ExpectRoundedUp(all.epsilon, .875);
  ExpectRoundedUp(all.delta, 3e-6);
  EXPECT_EQ(all.radius, .25);
  EXPECT_EQ(all.metric, "l2");
  EXPECT_TRUE(all.proven);
  EXPECT_FALSE(all.gaussian_mu.has_value());
}

TEST(Composition, IsProvenOnlyWhenEveryPartIsAndNamesTheSourcesOnce) {
  Guarantee printed = Dp(1, 0, "printed");
  printed.proven = false;
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeBasic({Dp(1, 0), printed, Dp(1, 0)}));
  EXPECT_FALSE(all.proven);
  EXPECT_EQ(all.source, "basic composition (Dwork and Roth 2014, theorem 3.16) of: test; printed");
}

TEST(Composition, RefusesDifferentNeighboursAndNothing) {
  Guarantee other = Dp(1, 0);
  other.neighbours = "a row added";
  EXPECT_THAT(ComposeBasic({Dp(1, 0), other}), FailsWith(kInvalid, "a row added"));
  EXPECT_THAT(ComposeBasic({Dp(1, 0), Within(1, 1, 0)}), FailsWith(kInvalid, "in l2"));
  EXPECT_THAT(ComposeBasic({}), FailsWith(kInvalid, "at least 1"));
  EXPECT_THAT(ComposeBasic({Dp(std::nan(""), 0)}), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(ComposeBasic({Dp(1, .6), Dp(1, .6)}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "delta below 1"));
}

// The largest epsilon that k releases of randomised response, the worst epsilon-DP mechanism, can
// have at delta: enumerated exactly over the binomial number of honest answers.
double ExactDeltaOfRandomisedResponse(double epsilon, int k, double at) {
  const double honest = 1 / (1 + std::exp(-epsilon));
  double delta = 0;
  for (int j = 0; j <= k; ++j) {
    const double ways =
        std::exp(std::lgamma(k + 1.) - std::lgamma(j + 1.) - std::lgamma(k - j + 1.));
    const double here = ways * std::pow(honest, j) * std::pow(1 - honest, k - j);
    const double there = ways * std::pow(honest, k - j) * std::pow(1 - honest, j);
    delta += std::max(0., here - std::exp(at) * there);
  }
  return delta;
}

TEST(StrongComposition, CoversTheWorstMechanismThereIs) {
  for (const double epsilon : {.05, .3, 1.0}) {
    for (const int k : {1, 5, 60}) {
      for (const double slack : {1e-2, 1e-6}) {
        for (const auto form :
             {StrongForm::kDworkRothblumVadhan, StrongForm::kKairouzOhViswanath}) {
          const double claimed = ComposeStrong(Dp(epsilon, 0), k, slack, form)->epsilon;
          EXPECT_LE(ExactDeltaOfRandomisedResponse(epsilon, k, claimed), slack);
        }
        const std::vector<Guarantee> parts(static_cast<size_t>(k), Dp(epsilon, 0));
        const Guarantee all = *ComposeHeterogeneous(parts, slack);
        EXPECT_LE(ExactDeltaOfRandomisedResponse(epsilon, k, all.epsilon), all.delta + 1e-12);
        // Pure DP read as Gaussian DP covers it, too.
        const double gaussian = ComposeGaussian(parts, slack)->epsilon;
        EXPECT_LE(ExactDeltaOfRandomisedResponse(epsilon, k, gaussian), slack * (1 + 1e-9));
      }
    }
  }
}

TEST(StrongComposition, OfTheSecondFormIsNeverAboveTheFirst) {
  for (const double epsilon : {1e-3, .1, 2.0}) {
    EXPECT_LT(ComposeStrong(Dp(epsilon, 0), 9, 1e-6, StrongForm::kKairouzOhViswanath)->epsilon,
              ComposeStrong(Dp(epsilon, 0), 9, 1e-6, StrongForm::kDworkRothblumVadhan)->epsilon);
  }
}

// k e + ... of the formula itself, written out.
double Together(double each, double delta, double times) {
  return each * std::sqrt(2 * times * std::log(1 / delta)) +
         times * each * std::expm1(each) / (std::exp(each) + 1);
}

TEST(EpsilonOfEachRelease, SpendsAllThatStrongCompositionAllows) {
  for (const double epsilon : {.1, 1.0, 30.0}) {
    for (const int times : {40, 500, 10000}) {
      const EpsilonShare each = *EpsilonOfEachRelease(epsilon, 1e-5, times);
      if (each.epsilon * times <= epsilon) continue;  // the plain sum allows more
      EXPECT_LE(Together(each.epsilon, 1e-5, times), epsilon * (1 + 1e-15));
      EXPECT_GT(Together(each.epsilon * (1 + 1e-9), 1e-5, times), epsilon);
      EXPECT_EQ(each.theorem, kStrongComposition);
      EXPECT_EQ(each.delta, 1e-5);
    }
  }
  EXPECT_GT(EpsilonOfEachRelease(1, 1e-5, 10000)->epsilon, 10 / 10000.)
      << "strong composition must win";
}

TEST(EpsilonOfEachRelease, IsThePlainShareForFewReleasesAndWithoutADelta) {
  EXPECT_EQ(EpsilonOfEachRelease(.7, 1e-5, 1)->epsilon, .7);
  EXPECT_EQ(EpsilonOfEachRelease(.7, 0, 1)->epsilon, .7);
  for (const double delta : {0.0, 1e-5}) {
    for (const double epsilon : {.1, .7, 1.0}) {
      for (const int times : {2, 3, 7}) {
        const EpsilonShare each = *EpsilonOfEachRelease(epsilon, delta, times);
        EXPECT_LE(static_cast<long double>(each.epsilon) * times, epsilon);
        EXPECT_NEAR(each.epsilon * times, epsilon, 2e-15 * epsilon);
        EXPECT_EQ(each.theorem, kBasicComposition);
        EXPECT_EQ(each.delta, 0) << "the plain sum needs none";
      }
    }
  }
  EXPECT_NEAR(EpsilonOfEachRelease(1, 0, 10000)->epsilon, 1e-4, 1e-18);
}

TEST(EpsilonOfEachRelease, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(EpsilonOfEachRelease(nan, 1e-5, 2), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(EpsilonOfEachRelease(0, 1e-5, 2), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(EpsilonOfEachRelease(1, nan, 2), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(EpsilonOfEachRelease(1, 1, 2), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(EpsilonOfEachRelease(1, .1, 0), FailsWith(kInvalid, "times"));
  EXPECT_THAT(EpsilonOfEachRelease(1, .1, 10001), FailsWith(kInvalid, "times"));
}

TEST(HeterogeneousComposition, PaysNoSlackWherePlainSumsWin) {
  const Guarantee few = *ComposeHeterogeneous({Dp(.1, 1e-7), Dp(.2, 1e-7)}, 1e-6);
  ExpectRoundedUp(few.epsilon, .1 + .2);
  ExpectRoundedUp(few.delta, 2e-7);
  const std::vector<Guarantee> many(1000, Dp(.01, 0));
  const Guarantee all = *ComposeHeterogeneous(many, 1e-6);
  EXPECT_LT(all.epsilon, 2);
  EXPECT_DOUBLE_EQ(all.delta, 1e-6);
}

TEST(StrongComposition, BadParametersAreNamed) {
  constexpr auto kForm = StrongForm::kKairouzOhViswanath;
  EXPECT_THAT(ComposeStrong(Dp(1, 0), 0, .1, kForm), FailsWith(kInvalid, "times"));
  EXPECT_THAT(ComposeStrong(Dp(1, 0), 2, std::nan(""), kForm), FailsWith(kInvalid, "delta_slack"));
  EXPECT_THAT(ComposeHeterogeneous({Dp(1, 0)}, 0), FailsWith(kInvalid, "delta_slack"));
}

TEST(ParallelComposition, OverChunksAddsAndOverRecordsTakesTheLargest) {
  const std::vector<Guarantee> parts = {Within(.5, .25, 1e-6), Within(.25, .5, 2e-6)};
  ExpectRoundedUp(ComposeOverChunksOfOneInput(parts)->epsilon, .75);
  EXPECT_EQ(ComposeOverChunksOfOneInput(parts)->radius, .25);
  EXPECT_EQ(ComposeOverDisjointRecords(parts)->epsilon, .5);
  EXPECT_EQ(ComposeOverDisjointRecords(parts)->delta, 2e-6);
  EXPECT_EQ(ComposeOverDisjointRecords({Gaussian(.3), Gaussian(.2)})->gaussian_mu, .3);
}

TEST(GaussianComposition, IsOneGaussianOfTheRootOfTheSummedSquares) {
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeGaussian({Gaussian(.3), Gaussian(.4)}, 1e-5));
  EXPECT_NEAR(*all.gaussian_mu, .5, 1e-14);
  EXPECT_NEAR(all.epsilon, *GaussianEpsilon(.5, 1e-5), 1e-12);
  EXPECT_EQ(all.delta, 1e-5);
  EXPECT_LT(all.epsilon, ComposeBasic({Gaussian(.3), Gaussian(.4)})->epsilon);
}

// Every part but the first is so small that a sum in doubles loses all of it.
TEST(GaussianComposition, IsNeverBelowTheRootHoweverManyPartsThereAre) {
  for (const int small : {1, 100, 100'000}) {
    std::vector<Guarantee> parts = {Gaussian(1)};
    Guarantee part = Dp(1e-6, 1e-9);
    part.gaussian_mu = 1e-8;
    parts.resize(1 + static_cast<size_t>(small), part);
    const long double root = std::sqrt(1 + small * 1e-8L * 1e-8L);
    for (const auto& all : {ComposeGaussian(parts, 1e-5), ComposeBasic(parts)}) {
      ASSERT_THAT(all, IsOk());
      EXPECT_GE(*all->gaussian_mu, root) << small;
      EXPECT_LE(*all->gaussian_mu, root * (1 + 2e-11L)) << small;
    }
  }
}

TEST(GaussianComposition, NamesAPartThatIsNeitherGaussianNorPure) {
  EXPECT_THAT(ComposeGaussian({Gaussian(.3), Dp(1, 1e-9, "the odd one")}, 1e-5),
              FailsWith(kInvalid, "the odd one"));
  EXPECT_THAT(ComposeGaussian({Gaussian(.3)}, std::nan("")), FailsWith(kInvalid, "delta"));
}

TEST(Chaining, CountsStepsOnALine) {
  const Guarantee far = *ChainToRadius(Within(.1, 1, 1e-5), .25, InputDomain::kConvex);
  EXPECT_EQ(far.epsilon, 3);
  EXPECT_EQ(far.radius, .25);
  EXPECT_NEAR(far.delta, 1e-5 * (1 + std::exp(1.) + std::exp(2.)), 1e-18);
  // .1 + .2 is a little more than three times .1 in binary, so four steps are needed.
  EXPECT_EQ(ChainToRadius(Within(.1, 1, 0), .1 + .2, InputDomain::kConvex)->epsilon, 4);
  EXPECT_EQ(ChainToRadius(Within(.1, 1, 0), .3, InputDomain::kConvex)->epsilon, 3);
  EXPECT_DOUBLE_EQ(ChainToRadius(Within(.1, 0, 1e-5), .3, InputDomain::kConvex)->delta, 3e-5);
}

TEST(Chaining, OnTheSphereTakesAsManyStepsAsArcsFit) {
  // Antipodes are half a circle apart; chords of length 1 span sixths of a circle.
  EXPECT_EQ(ChainToRadius(Within(1, 1, 0), 1.999, InputDomain::kUnitSphere)->epsilon, 3);
  EXPECT_EQ(ChainToRadius(Within(1, 1, 0), 1.999, InputDomain::kConvex)->epsilon, 2);
  EXPECT_EQ(ChainToRadius(Within(.5, 1, 0), .4, InputDomain::kUnitSphere)->epsilon, 1);
}

TEST(Chaining, RefusesWhatHasNoRadiusOrLeavesNothing) {
  EXPECT_THAT(ChainToRadius(Dp(1, 0), 1, InputDomain::kConvex), FailsWith(kInvalid, "radius"));
  EXPECT_THAT(ChainToRadius(Within(1, 1, 0), std::nan(""), InputDomain::kConvex),
              FailsWith(kInvalid, "radius"));
  EXPECT_THAT(ChainToRadius(Within(1, 1, 0), 2.5, InputDomain::kUnitSphere),
              FailsWith(kInvalid, "radius"));
  Guarantee l1 = Within(1, 1, 0);
  l1.metric = "l1";
  EXPECT_THAT(ChainToRadius(l1, 1.5, InputDomain::kUnitSphere), FailsWith(kInvalid, "metric"));
  EXPECT_THAT(ChainToRadius(Within(.01, 1, 1e-5), 1, InputDomain::kConvex),
              FailsWith(absl::StatusCode::kFailedPrecondition, "delta"));
}

}  // namespace
}  // namespace privatemail::client

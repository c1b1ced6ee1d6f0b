#include "client/privacy/accounting/composition.h"

#include <cmath>
#include <random>
#include <vector>

#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client {
namespace {

// At least the exact value, and hardly above.
void ExpectRoundedUp(double sum, double exact) {
  EXPECT_GE(sum, exact);
  EXPECT_LE(sum, exact * (1 + 1e-14));
}

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

TEST(BasicComposition, SumsAndTakesSmallestRadius) {
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

TEST(Composition, IsProvenIfEveryPartIsAndNamesSourcesOnce) {
  Guarantee printed = Dp(1, 0, "printed");
  printed.proven = false;
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeBasic({Dp(1, 0), printed, Dp(1, 0)}));
  EXPECT_FALSE(all.proven);
  EXPECT_EQ(all.source, "basic composition (Dwork and Roth 2014, theorem 3.16) of: test; printed");
}

TEST(Composition, DifferentNeighboursOrNoPartsAreRefused) {
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

TEST(StrongComposition, CoversRandomizedResponse) {
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
        // So does pure DP converted to Gaussian DP.
        const double gaussian = ComposeGaussian(parts, slack)->epsilon;
        EXPECT_LE(ExactDeltaOfRandomisedResponse(epsilon, k, gaussian), slack * (1 + 1e-9));
      }
    }
  }
}

// The formula of strong composition, written out.
double Together(double each, double delta, double times) {
  return each * std::sqrt(2 * times * std::log(1 / delta)) +
         times * each * std::expm1(each) / (std::exp(each) + 1);
}

TEST(EpsilonPerRelease, SpendsAllThatStrongCompositionAllows) {
  for (const double epsilon : {.1, 1.0, 30.0}) {
    for (const int times : {40, 500, 10000}) {
      const EpsilonShare each = *EpsilonPerRelease(epsilon, 1e-5, times);
      if (each.epsilon * times <= epsilon) continue;  // the plain sum allows more
      EXPECT_LE(Together(each.epsilon, 1e-5, times), epsilon * (1 + 1e-15));
      EXPECT_GT(Together(each.epsilon * (1 + 1e-9), 1e-5, times), epsilon);
      EXPECT_EQ(each.theorem, kStrongComposition);
      EXPECT_EQ(each.delta, 1e-5);
    }
  }
  EXPECT_GT(EpsilonPerRelease(1, 1e-5, 10000)->epsilon, 10 / 10000.)
      << "strong composition must win";
}

TEST(EpsilonPerRelease, FewReleasesOrNoDeltaUseBasicComposition) {
  EXPECT_EQ(EpsilonPerRelease(.7, 1e-5, 1)->epsilon, .7);
  EXPECT_EQ(EpsilonPerRelease(.7, 0, 1)->epsilon, .7);
  for (const double delta : {0.0, 1e-5}) {
    for (const double epsilon : {.1, .7, 1.0}) {
      for (const int times : {2, 3, 7}) {
        const EpsilonShare each = *EpsilonPerRelease(epsilon, delta, times);
        EXPECT_LE(static_cast<long double>(each.epsilon) * times, epsilon);
        EXPECT_NEAR(each.epsilon * times, epsilon, 2e-15 * epsilon);
        EXPECT_EQ(each.theorem, kBasicComposition);
        EXPECT_EQ(each.delta, 0) << "the plain sum needs none";
      }
    }
  }
  EXPECT_NEAR(EpsilonPerRelease(1, 0, 10000)->epsilon, 1e-4, 1e-18);
}

TEST(EpsilonPerRelease, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(EpsilonPerRelease(nan, 1e-5, 2), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(EpsilonPerRelease(0, 1e-5, 2), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(EpsilonPerRelease(1, nan, 2), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(EpsilonPerRelease(1, 1, 2), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(EpsilonPerRelease(1, .1, 0), FailsWith(kInvalid, "times"));
  EXPECT_THAT(EpsilonPerRelease(1, .1, 10001), FailsWith(kInvalid, "times"));
}

TEST(HeterogeneousComposition, SumsThatWinCostNoSlack) {
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

TEST(ParallelComposition, ChunksAddAndDisjointRecordsTakeTheLargest) {
  const std::vector<Guarantee> parts = {Within(.5, .25, 1e-6), Within(.25, .5, 2e-6)};
  ExpectRoundedUp(ComposeOverInputChunks(parts)->epsilon, .75);
  EXPECT_EQ(ComposeOverInputChunks(parts)->radius, .25);
  EXPECT_EQ(ComposeOverDisjointRecords(parts)->epsilon, .5);
  EXPECT_EQ(ComposeOverDisjointRecords(parts)->delta, 2e-6);
  EXPECT_EQ(ComposeOverDisjointRecords({Gaussian(.3), Gaussian(.2)})->gaussian_mu, .3);
}

TEST(GaussianComposition, MuIsRootOfSumOfSquares) {
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeGaussian({Gaussian(.3), Gaussian(.4)}, 1e-5));
  EXPECT_NEAR(*all.gaussian_mu, .5, 1e-14);
  EXPECT_NEAR(all.epsilon, *GaussianEpsilon(.5, 1e-5), 1e-12);
  EXPECT_EQ(all.delta, 1e-5);
  EXPECT_LT(all.epsilon, ComposeBasic({Gaussian(.3), Gaussian(.4)})->epsilon);
}

// Parts so small that a sum in doubles loses them.
TEST(GaussianComposition, ManySmallPartsAreRoundedUp) {
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

TEST(GaussianComposition, PartWithoutMuOrPureDpIsNamed) {
  EXPECT_THAT(ComposeGaussian({Gaussian(.3), Dp(1, 1e-9, "the odd one")}, 1e-5),
              FailsWith(kInvalid, "the odd one"));
  EXPECT_THAT(ComposeGaussian({Gaussian(.3)}, std::nan("")), FailsWith(kInvalid, "delta"));
}

TEST(Chaining, ConvexDomainCountsStepsOnALine) {
  const Guarantee far = *ChainToRadius(Within(.1, 1, 1e-5), .25, InputDomain::kConvex);
  EXPECT_EQ(far.epsilon, 3);
  EXPECT_EQ(far.radius, .25);
  EXPECT_NEAR(far.delta, 1e-5 * (1 + std::exp(1.) + std::exp(2.)), 1e-18);
  // .1 + .2 is a little more than three times .1 in binary, so four steps are needed.
  EXPECT_EQ(ChainToRadius(Within(.1, 1, 0), .1 + .2, InputDomain::kConvex)->epsilon, 4);
  EXPECT_EQ(ChainToRadius(Within(.1, 1, 0), .3, InputDomain::kConvex)->epsilon, 3);
  EXPECT_DOUBLE_EQ(ChainToRadius(Within(.1, 0, 1e-5), .3, InputDomain::kConvex)->delta, 3e-5);
}

TEST(Chaining, SphereCountsArcs) {
  // Antipodes are half a circle apart; chords of length 1 span sixths of a circle.
  EXPECT_EQ(ChainToRadius(Within(1, 1, 0), 1.999, InputDomain::kUnitSphere)->epsilon, 3);
  EXPECT_EQ(ChainToRadius(Within(1, 1, 0), 1.999, InputDomain::kConvex)->epsilon, 2);
  EXPECT_EQ(ChainToRadius(Within(.5, 1, 0), .4, InputDomain::kUnitSphere)->epsilon, 1);
}

TEST(Chaining, NoRadiusOrUselessResultIsRefused) {
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

class CompositionRounding : public ::testing::Test {
 protected:
  // Log-uniform.
  double Between(double low, double high) {
    std::uniform_real_distribution<double> logarithm(std::log(low), std::log(high));
    return std::exp(logarithm(bits_));
  }
  int64_t WholeBetween(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(bits_);
  }

  std::mt19937_64 bits_{2015};
};

// At least the exact value, in a hundred digits, and hardly above.
void ExpectRoundedUp(double claimed, const Real& exact) {
  EXPECT_GE(Real(claimed), exact);
  EXPECT_LE(Real(claimed), exact * (1 + Real(1e-11)));
}

Real MeanLoss(const Real& epsilon, StrongForm form) {
  const Real odds = exp(epsilon);
  return form == StrongForm::kDworkRothblumVadhan ? Real(epsilon * (odds - 1))
                                                  : Real(epsilon * (odds - 1) / (odds + 1));
}

TEST_F(CompositionRounding, StrongCompositionIsRoundedUp) {
  for (int trial = 0; trial < 3000; ++trial) {
    const auto form =
        trial % 2 == 0 ? StrongForm::kDworkRothblumVadhan : StrongForm::kKairouzOhViswanath;
    const Guarantee each = Dp(Between(1e-4, 3), Between(1e-30, 1e-10));
    const int64_t times = WholeBetween(1, 1000);
    const double slack = Between(1e-30, .9);
    ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeStrong(each, times, slack, form));
    const Real k = times;
    ExpectRoundedUp(all.epsilon, Real(each.epsilon) * sqrt(-2 * k * log(Real(slack))) +
                                     k * MeanLoss(each.epsilon, form));
    ExpectRoundedUp(all.delta, k * Real(each.delta) + Real(slack));
  }
}

TEST_F(CompositionRounding, HeterogeneousCompositionOfManyPartsIsRoundedUp) {
  for (int trial = 0; trial < 20; ++trial) {
    const double slack = Between(1e-30, 1e-3);
    std::vector<Guarantee> parts;
    Real mean = 0;
    Real squares = 0;
    Real sum = 0;
    Real deltas = 0;
    for (int64_t i = WholeBetween(2, 3000); i > 0; --i) {
      const Guarantee& part = parts.emplace_back(Dp(Between(1e-3, .1), Between(1e-30, 1e-10)));
      mean += MeanLoss(part.epsilon, StrongForm::kKairouzOhViswanath);
      squares += Real(part.epsilon) * Real(part.epsilon);
      sum += Real(part.epsilon);
      deltas += Real(part.delta);
    }
    const Real log_term =
        (std::min)(Real(log(exp(Real(1)) + sqrt(squares) / Real(slack))), Real(-log(Real(slack))));
    const Real strong = mean + sqrt(2 * squares * log_term);
    ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeHeterogeneous(parts, slack));
    ExpectRoundedUp(all.epsilon, (std::min)(strong, sum));
    ExpectRoundedUp(all.delta, strong < sum ? Real(deltas + Real(slack)) : deltas);
  }
}

TEST_F(CompositionRounding, ChainsAreRoundedUp) {
  for (int trial = 0; trial < 5000; ++trial) {
    Guarantee step = Dp(Between(1e-6, 1), Between(1e-300, 1e-290));
    step.radius = Between(.01, .1);
    step.metric = "l2";
    step.gaussian_mu = Between(1e-3, 1);
    const double radius = Between(.2, 2);
    ASSERT_OK_AND_ASSIGN(const Guarantee chain, ChainToRadius(step, radius, InputDomain::kConvex));
    const Real steps = ceil(Real(radius) / Real(*step.radius));
    ExpectRoundedUp(chain.epsilon, steps * Real(step.epsilon));
    ExpectRoundedUp(*chain.gaussian_mu, steps * Real(*step.gaussian_mu));
    ExpectRoundedUp(chain.delta, Real(step.delta) * (exp(steps * Real(step.epsilon)) - 1) /
                                     (exp(Real(step.epsilon)) - 1));
  }
}

// The squares of these underflow.
TEST_F(CompositionRounding, UnderflowingSquaresAreRoundedUp) {
  Guarantee part = Dp(1e-170, 1e-20);
  part.gaussian_mu = 1e-170;
  const std::vector<Guarantee> parts(100, part);
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeHeterogeneous(parts, 1e-5));
  ExpectRoundedUp(all.epsilon, 100 * Real(1e-170));
  ExpectRoundedUp(*all.gaussian_mu, 10 * Real(1e-170));
  for (const double smallest : {5e-324, 1e-320}) {
    const Guarantee each = Dp(smallest, smallest);
    const Guarantee strong = *ComposeStrong(each, 7, .5, StrongForm::kKairouzOhViswanath);
    EXPECT_GE(Real(strong.epsilon), Real(smallest) * sqrt(14 * log(Real(2))));
    Guarantee step = each;
    step.radius = 1;
    step.metric = "l2";
    EXPECT_GE(ChainToRadius(step, 3, InputDomain::kConvex)->delta, 3 * smallest);
  }
}

}  // namespace
}  // namespace privatemail::client

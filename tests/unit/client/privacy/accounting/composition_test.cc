#include "client/privacy/accounting/composition.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

// The delta at epsilon `at` of `times` releases of randomised response, the worst epsilon-DP
// mechanism: enumerated over the binomial number of honest answers.
double ExactDeltaOfRandomisedResponse(double epsilon, int times, double at) {
  const double honest = 1 / (1 + std::exp(-epsilon));
  double delta = 0;
  for (int j = 0; j <= times; ++j) {
    const double ways =
        std::exp(std::lgamma(times + 1.) - std::lgamma(j + 1.) - std::lgamma(times - j + 1.));
    const double here = ways * std::pow(honest, j) * std::pow(1 - honest, times - j);
    const double there = ways * std::pow(honest, times - j) * std::pow(1 - honest, j);
    delta += std::max(0., here - std::exp(at) * there);
  }
  return delta;
}

TEST(EpsilonPerRelease, CoversRandomizedResponse) {
  for (const double epsilon : {.5, 2.0, 10.0}) {
    for (const int times : {1, 5, 60}) {
      for (const double delta : {1e-2, 1e-6}) {
        const EpsilonShare each = *EpsilonPerRelease(epsilon, delta, times);
        EXPECT_LE(ExactDeltaOfRandomisedResponse(each.epsilon, times, epsilon), each.delta + 1e-12)
            << epsilon << " " << times << " " << delta;
      }
    }
  }
}

// The formula of strong composition, written out.
long double Together(long double each, long double delta, long double times) {
  return each * std::sqrt(2 * times * std::log(1 / delta)) +
         times * each * std::expm1(each) / (std::exp(each) + 1);
}

TEST(EpsilonPerRelease, SpendsAllThatStrongCompositionAllows) {
  for (const double epsilon : {.1, 1.0, 30.0}) {
    for (const int times : {40, 500, 10000}) {
      const EpsilonShare each = *EpsilonPerRelease(epsilon, 1e-5, times);
      if (each.epsilon * times <= epsilon) continue;  // the plain sum allows more
      EXPECT_LE(Together(each.epsilon, 1e-5, times), epsilon);
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

}  // namespace
}  // namespace privatemail::client

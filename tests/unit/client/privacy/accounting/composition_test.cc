#include "client/privacy/accounting/composition.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client {
namespace {

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

TEST(EpsilonPerRelease, CoversRandomizedResponse) {
  for (const double epsilon : {.1, 1.0, 8.0}) {
    for (const int times : {1, 5, 60}) {
      for (const double delta : {1e-2, 1e-6}) {
        const EpsilonShare each = *EpsilonPerRelease(epsilon, delta, times);
        EXPECT_LE(ExactDeltaOfRandomisedResponse(each.epsilon, times, epsilon), each.delta + 1e-12);
      }
    }
  }
}

// The formula of strong composition in a hundred digits.
Real Together(const Real& each, const Real& delta, int64_t times) {
  return each * sqrt(-2 * times * log(delta)) + times * each * (exp(each) - 1) / (exp(each) + 1);
}

TEST(EpsilonPerRelease, SpendsAllThatStrongCompositionAllows) {
  std::mt19937_64 generator(2015);
  std::uniform_real_distribution<double> log_epsilon(std::log(1e-3), std::log(30));
  std::uniform_real_distribution<double> log_delta(std::log(1e-30), std::log(.5));
  int strong = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const double epsilon = std::exp(log_epsilon(generator));
    const double delta = std::exp(log_delta(generator));
    const int64_t times = std::uniform_int_distribution<int64_t>(1, 10000)(generator);
    ASSERT_OK_AND_ASSIGN(const EpsilonShare each, EpsilonPerRelease(epsilon, delta, times));
    if (each.theorem != kStrongComposition) continue;  // the plain sum allows more
    ++strong;
    EXPECT_EQ(each.delta, delta);
    EXPECT_GT(each.epsilon * static_cast<double>(times), epsilon);
    EXPECT_LE(Together(each.epsilon, delta, times), Real(epsilon));
    EXPECT_GT(Together(Real(each.epsilon) * (1 + 1e-12), delta, times), Real(epsilon));
  }
  EXPECT_GT(strong, 100);
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

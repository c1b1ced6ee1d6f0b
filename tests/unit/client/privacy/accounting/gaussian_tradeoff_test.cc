#include "client/privacy/accounting/gaussian_tradeoff.h"

#include <cmath>

#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client {
namespace {

TEST(LnGaussianDelta, MatchesAHundredDigits) {
  for (const double mu : {1e-6, 1e-5, .00099, .00101, .1, 1.0, 5.0, 30.0}) {
    for (const double in_mus : {0.0, .01, 1.0, 3.0, 10.0, 30.0, 36.9}) {
      const double epsilon = mu * mu / 2 + mu * in_mus;
      const Real expected = log(DeltaOf(epsilon, mu));
      EXPECT_LE(abs(Real(LnGaussianDelta(epsilon, mu)) - expected), Real(1e-9))
          << mu << " " << epsilon;
    }
  }
}

TEST(GaussianEpsilon, IsSmallestAtDelta) {
  for (const double mu : {1e-6, 1e-4, .00099, .00101, .01, .3, 1.0, 8.0, 40.0}) {
    for (const double delta : {1e-300, 1e-30, 1e-5, .3}) {
      ASSERT_OK_AND_ASSIGN(const double epsilon, GaussianEpsilon(mu, delta));
      EXPECT_LE(DeltaOf(epsilon, mu), Real(delta)) << mu << " " << delta;
      if (epsilon > 0) {
        EXPECT_GT(DeltaOf(epsilon * (1 - 1e-8), mu), Real(delta)) << mu << " " << delta;
      }
    }
  }
}

TEST(GaussianEpsilon, TotalVariationBelowDeltaReturnsZero) {
  EXPECT_EQ(*GaussianEpsilon(.1, .3), 0);
  EXPECT_GT(*GaussianEpsilon(.1, .03), 0);
}

TEST(GaussianTradeoff, ExtremesDoNotOverflow) {
  EXPECT_EQ(LnGaussianDelta(1, 1e6), 0);
  EXPECT_TRUE(std::isfinite(LnGaussianDelta(1e9, 1)));
  EXPECT_LT(LnGaussianDelta(1e9, 1), std::log(1e-300L));
  EXPECT_NEAR(*GaussianEpsilon(1e6, 1e-5) / 5e11, 1, 1e-4);
}

TEST(GaussianMuOfPureDp, PassesKinkInAHundredDigits) {
  for (const double epsilon : {1e-9, 1e-4, .5, .999, 1.0, 1.001, 5.0, 50.0, 1e3, 1e4}) {
    ASSERT_OK_AND_ASSIGN(const double mu, GaussianMuOfPureDp(epsilon));
    const Real kink = 1 / (1 + exp(Real(epsilon)));
    EXPECT_LE(Phi(Real(mu) / -2), kink) << epsilon;
    EXPECT_GT(Phi(Real(mu) * (1 - 1e-11) / -2), kink) << epsilon;
  }
}

// The whole claim, not only the kink: no test of an epsilon-DP pair beats the Gaussian pair.
TEST(GaussianMuOfPureDp, GaussianCurveIsBelowPureDpCurve) {
  for (const double epsilon : {.01, .7, 3.0, 20.0}) {
    const Real half = Real(*GaussianMuOfPureDp(epsilon));
    // Quantiles z of the first error; G(a) = Phi(z - mu) where a = Phi(-z).
    for (double z = -8; z <= 12; z += .25) {
      const Real first = Phi(-Real(z));
      const Real pure =
          (std::max)(Real(1 - exp(Real(epsilon)) * first), Real(exp(Real(-epsilon)) * (1 - first)));
      EXPECT_LE(Phi(Real(z) - half), pure) << epsilon << " at " << z;
    }
  }
}

TEST(GaussianTradeoff, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(GaussianEpsilon(nan, .1), FailsWith(kInvalid, "gaussian_mu"));
  EXPECT_THAT(GaussianEpsilon(0, .1), FailsWith(kInvalid, "gaussian_mu"));
  EXPECT_THAT(GaussianEpsilon(1, nan), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(GaussianEpsilon(1, 1), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(GaussianMuOfPureDp(nan), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(GaussianMuOfPureDp(0), FailsWith(kInvalid, "epsilon"));
}

}  // namespace
}  // namespace privatemail::client

#include "client/audit/lower_bound.h"

#include <gtest/gtest.h>

#include <cmath>

namespace privatemail::client::audit {
namespace {

// Clopper and Pearson by scipy: beta.ppf(.025, 60, 41) and beta.ppf(.975, 11, 90).
TEST(CertainRates, AreClopperAndPearsons) {
  const Rates rates = CertainRates({.releases = 100, .one = 60, .other = 10}, .95);
  EXPECT_NEAR(rates.one_at_least, 0.49720915042233477, 1e-9);
  EXPECT_NEAR(rates.other_at_most, 0.17622259774002266, 1e-9);
}

TEST(CertainRates, AreNeverSureOfNothing) {
  const Rates never = CertainRates({.releases = 1000, .one = 0, .other = 0}, .95);
  EXPECT_EQ(never.one_at_least, 0);
  EXPECT_NEAR(never.other_at_most, 1 - std::pow(.025, 1e-3), 1e-12);
  const Rates always = CertainRates({.releases = 1000, .one = 1000, .other = 1000}, .95);
  EXPECT_NEAR(always.one_at_least, std::pow(.025, 1e-3), 1e-12);
  EXPECT_EQ(always.other_at_most, 1);
}

TEST(LowerBounds, FollowTheirDefinitions) {
  EXPECT_NEAR(EpsilonLowerBound({.5, .1}, .1), std::log(4), 1e-15);
  EXPECT_EQ(EpsilonLowerBound({.1, .5}, .1), 0);
  EXPECT_NEAR(MuLowerBound({.975, .5}), 1.959963984540054, 1e-12);
  EXPECT_EQ(MuLowerBound({.2, .3}), 0);
  EXPECT_EQ(MuLowerBound({0, .3}), 0);
  EXPECT_EQ(MuLowerBound({.3, 1}), 0);
}

}  // namespace
}  // namespace privatemail::client::audit

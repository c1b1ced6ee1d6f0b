// What several guarantees promise together is never below the theorem's own number, here in a
// hundred digits, and hardly above it.
#include <cmath>
#include <random>
#include <vector>

#include "client/privacy/accounting/composition.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client {
namespace {

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
  Guarantee Part(double epsilon, double delta) {
    return {.epsilon = epsilon,
            .delta = delta,
            .neighbours = "any two",
            .proven = true,
            .source = "test"};
  }

  std::mt19937_64 bits_{2015};
};

void ExpectRoundedUp(double claimed, const Real& exact) {
  EXPECT_GE(Real(claimed), exact);
  EXPECT_LE(Real(claimed), exact * (1 + Real(1e-11)));
}

Real MeanLoss(const Real& epsilon, StrongForm form) {
  const Real odds = exp(epsilon);
  return form == StrongForm::kDworkRothblumVadhan ? Real(epsilon * (odds - 1))
                                                  : Real(epsilon * (odds - 1) / (odds + 1));
}

TEST_F(CompositionRounding, OfStrongCompositionIsUp) {
  for (int trial = 0; trial < 3000; ++trial) {
    const auto form =
        trial % 2 == 0 ? StrongForm::kDworkRothblumVadhan : StrongForm::kKairouzOhViswanath;
    const Guarantee each = Part(Between(1e-4, 3), Between(1e-30, 1e-10));
    const int64_t times = WholeBetween(1, 1000);
    const double slack = Between(1e-30, .9);
    ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeStrong(each, times, slack, form));
    const Real k = times;
    ExpectRoundedUp(all.epsilon, Real(each.epsilon) * sqrt(-2 * k * log(Real(slack))) +
                                     k * MeanLoss(each.epsilon, form));
    ExpectRoundedUp(all.delta, k * Real(each.delta) + Real(slack));
  }
}

TEST_F(CompositionRounding, OfHeterogeneousCompositionIsUpHoweverManyPartsThereAre) {
  for (int trial = 0; trial < 20; ++trial) {
    const double slack = Between(1e-30, 1e-3);
    std::vector<Guarantee> parts;
    Real mean = 0;
    Real squares = 0;
    Real sum = 0;
    Real deltas = 0;
    for (int64_t i = WholeBetween(2, 3000); i > 0; --i) {
      const Guarantee& part = parts.emplace_back(Part(Between(1e-3, .1), Between(1e-30, 1e-10)));
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

TEST_F(CompositionRounding, OfChainsIsUp) {
  for (int trial = 0; trial < 5000; ++trial) {
    Guarantee step = Part(Between(1e-6, 1), Between(1e-300, 1e-290));
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

// Squares of these are no doubles.
TEST_F(CompositionRounding, OfNumbersWhoseSquaresVanishIsUp) {
  Guarantee part = Part(1e-170, 1e-20);
  part.gaussian_mu = 1e-170;
  const std::vector<Guarantee> parts(100, part);
  ASSERT_OK_AND_ASSIGN(const Guarantee all, ComposeHeterogeneous(parts, 1e-5));
  ExpectRoundedUp(all.epsilon, 100 * Real(1e-170));
  ExpectRoundedUp(*all.gaussian_mu, 10 * Real(1e-170));
  for (const double smallest : {5e-324, 1e-320}) {
    const Guarantee each = Part(smallest, smallest);
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

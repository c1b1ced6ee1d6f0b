// Audit of the baselines, in production and with planted faults. False-alarm probability: below
// 1e-6 per baseline.
#include <cmath>
#include <set>

#include "client/audit/audit.h"
#include "client/audit/baseline_attacks.h"
#include "client/baselines/all_baselines.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr baselines::Cost kCost{.epsilon = 2, .delta = 1e-5};

constexpr int64_t kReleases = 200'000;  // at most

// The privacy loss of the attacked pair at epsilon 2.
double LossOfThePair(const std::string& name) {
  // Axes weighed 3 to 1 or 4 to none by e: the second has 1 / (1 + e^2) or 1 / (1 + e^4).
  if (name == "candidate-ppca") return std::log((1 + std::exp(4)) / (1 + std::exp(2)));
  // At the second axis: e^(epsilon / 2) I0(2) / I0(1), by the integrals of von Mises laws.
  if (name == "published-ppca")
    return 1 + std::log(std::cyl_bessel_i(0, 2) / std::cyl_bessel_i(0, 1));
  return kCost.epsilon;
}

Result AuditOf(const BaselineStep& step, const baselines::Cost& cost, double claimed_epsilon) {
  Subject subject = *step.attack(cost);
  subject.claim.epsilon = claimed_epsilon;
  return *RunAudit(subject, {.releases = kReleases});
}

TEST(BaselineAudit, CoversEveryPrivateBaseline) {
  std::set<std::string> attacked;
  for (const BaselineStep& step : BaselineSteps()) attacked.insert(step.name);
  std::set<std::string> private_ones;
  for (const baselines::Baseline& baseline : baselines::AllBaselines()) {
    if (baseline.takes_epsilon) private_ones.insert(baseline.name);
  }
  EXPECT_EQ(attacked, private_ones);
  EXPECT_EQ(BaselineStepFromName("gaussian"), nullptr);
}

TEST(BaselineAudit, NoBaselineExceedsItsClaim) {
  for (const BaselineStep& step : BaselineSteps()) {
    SCOPED_TRACE(step.name);
    EXPECT_EQ(BaselineStepFromName(step.name), &step);
    const Result result = AuditOf(step, kCost, kCost.epsilon);
    EXPECT_EQ(ExitCode({result}), 0) << result.epsilon_lower << " by " << result.best_attack;
    EXPECT_EQ(result.mechanism, step.name);
    EXPECT_EQ(result.claim.delta, step.takes_delta ? kCost.delta : 0);
    EXPECT_GT(result.epsilon_lower, .8 * LossOfThePair(step.name)) << "the attack is weak";
  }
}

// Noise made for twice the epsilon, as when halves of a sensitivity or of a score are forgotten.
TEST(BaselineAudit, DetectsNoiseForTwiceTheEpsilon) {
  for (const BaselineStep& step : BaselineSteps()) {
    SCOPED_TRACE(step.name);
    const Result result =
        AuditOf(step, {.epsilon = 2 * kCost.epsilon, .delta = kCost.delta}, kCost.epsilon);
    EXPECT_EQ(ExitCode({result}), 1) << result.epsilon_lower << " by " << result.best_attack;
  }
}

TEST(BaselineAudit, InvalidEpsilonReturnsInvalidArgument) {
  for (const BaselineStep& step : BaselineSteps()) {
    if (!step.takes_delta) continue;
    EXPECT_THAT(step.attack({.epsilon = -1, .delta = .1}),
                FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  }
}

}  // namespace
}  // namespace privatemail::client::audit

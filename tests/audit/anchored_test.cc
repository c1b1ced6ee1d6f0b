// Audit of the anchored release, in production and with planted faults. False-alarm probability:
// below 1e-6 per subject.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/audit/anchored_attack.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-5;
constexpr int64_t kReleases = 40'000;
const PrivacyCost kGaussian{.epsilon = kEpsilon, .delta = kDelta};

TEST(AnchoredAudit, EveryMechanismCostsNearlyItsClaim) {
  const std::vector<PrivacyCost> costs = AuditedAnchoredCosts(kEpsilon, kDelta);
  EXPECT_EQ(costs.size(), 7u);
  for (const PrivacyCost& cost : costs) {
    SCOPED_TRACE(absl::StrCat(TraitsOf(cost.mechanism).name, " ", cost.radius));
    ASSERT_OK_AND_ASSIGN(const Subject subject, AttackAnchoredRelease(cost));
    EXPECT_TRUE(subject.claim.proven);
    ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = kReleases}));
    RecordProperty(absl::StrCat(TraitsOf(cost.mechanism).name, "_", cost.radius),
                   std::to_string(result.epsilon_lower));
    EXPECT_LE(result.epsilon_lower, kEpsilon) << result.best_attack;
    // Found on average: 1.7 of Gaussian noise (deviation .03), 1.27 of a small radius, whose pair
    // moves by .81 of the sensitivity; more of Laplace noise, less of a box
    // (bounded_gaussian_calibration.h). The floors are at least five deviations below.
    const double least = cost.mechanism == MechanismKind::kBoundedGaussian ? .3
                         : cost.radius == .1                               ? .55
                                                                           : .75;
    EXPECT_GE(result.epsilon_lower, least * kEpsilon) << result.best_attack;
  }
  EXPECT_THAT(AttackAnchoredRelease({.epsilon = -1, .delta = kDelta}),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
}

void ExpectDetected(const PrivacyCost& cost, const AnchoredReleaseFn& release) {
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackAnchoredRelease(cost, release));
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = kReleases}));
  EXPECT_EQ(ExitCode({result}), 1) << result.epsilon_lower << " by " << result.best_attack;
}

absl::StatusOr<FloatMatrix> WithNoiseOf(const MechanismParameters& mechanism, double largest,
                                        const Matrix& rows, BitSource& bits) {
  return (*MakeMechanism(mechanism, {.values = rows.size(), .largest_value = largest}))
      ->Release(rows, bits);
}

// Forgets the target's old slot, which gets its dummy back.
TEST(AnchoredAudit, DetectsSensitivityOfOneRowWhereTwoChange) {
  ExpectDetected(kGaussian,
                 [](const AnchoredSetting& setting, const AnchoredNoise& noise,
                    const std::vector<int64_t>& dummies, const PlacedTarget& target,
                    BitSource& bits) -> absl::StatusOr<FloatMatrix> {
                   return WithNoiseOf({.kind = MechanismKind::kGaussian,
                                       .epsilon = kEpsilon,
                                       .delta = kDelta,
                                       .sensitivity = noise.sensitivity / std::sqrt(2)},
                                      1, ScaledSlotRows(setting, noise, dummies, target), bits);
                 });
}

TEST(AnchoredAudit, DetectsNoiseInTargetSlotOnly) {
  ExpectDetected(kGaussian,
                 [](const AnchoredSetting& setting, const AnchoredNoise& noise,
                    const std::vector<int64_t>& dummies, const PlacedTarget& target,
                    BitSource& bits) -> absl::StatusOr<FloatMatrix> {
                   const Matrix exact = ScaledSlotRows(setting, noise, dummies, target);
                   absl::StatusOr<FloatMatrix> rows = noise.mechanism->Release(exact, bits);
                   if (!rows.ok()) return rows;
                   for (Eigen::Index c = 0; c < exact.rows(); ++c) {
                     if (c != target.slot) rows->row(c) = exact.row(c).cast<float>();
                   }
                   return rows;
                 });
}

// Within a small radius `speed` alone bounds the move of a row.
TEST(AnchoredAudit, DetectsHalvedSpeed) {
  const PrivacyCost within{
      .epsilon = kEpsilon, .delta = kDelta, .mechanism = MechanismKind::kGaussOutput, .radius = .1};
  ExpectDetected(within,
                 [=](const AnchoredSetting& setting, const AnchoredNoise& noise,
                     const std::vector<int64_t>& dummies, const PlacedTarget& target,
                     BitSource& bits) -> absl::StatusOr<FloatMatrix> {
                   return WithNoiseOf({.kind = within.mechanism,
                                       .epsilon = kEpsilon,
                                       .delta = kDelta,
                                       .ball = {.radius = within.radius, .p = 2},
                                       .lipschitz = noise.sensitivity / within.radius / 2},
                                      noise.largest,
                                      ScaledSlotRows(setting, noise, dummies, target), bits);
                 });
}

// Rows that are not projected, with the noise of projected ones.
TEST(AnchoredAudit, DetectsRowsOutsideTheirBalls) {
  ExpectDetected(kGaussian,
                 [](const AnchoredSetting& setting, const AnchoredNoise& noise,
                    const std::vector<int64_t>& dummies, const PlacedTarget& target,
                    BitSource& bits) -> absl::StatusOr<FloatMatrix> {
                   AnchoredSetting wide = setting;
                   wide.radii *= 1e6;
                   return WithNoiseOf({.kind = MechanismKind::kGaussian,
                                       .epsilon = kEpsilon,
                                       .delta = kDelta,
                                       .sensitivity = noise.sensitivity},
                                      1e6, ScaledSlotRows(wide, noise, dummies, target), bits);
                 });
}

}  // namespace
}  // namespace privatemail::client::audit

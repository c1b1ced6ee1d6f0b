// Audit of the production joint release by every mechanism. False-alarm probability: below 1e-6 per
// upper bound.

#include "client/audit/joint_attack.h"
#include "client/privacy/accounting/composition.h"
#include "common/base/validate.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::audit {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Law = MechanismTraits::Law;

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-5;

class JointAudit : public ::testing::TestWithParam<PrivacyCost> {};

// Power of the attack: each floor is five deviations below the average of 10,000 releases (1.37 and
// 1.46, 1.02, .42, .46). The pairs move by less than the whole sensitivity.
double MinEpsilonFound(const PrivacyCost& cost) {
  if (cost.private_iterations > 2) return 0;
  switch (cost.mechanism) {
    case MechanismKind::kGaussian:
    case MechanismKind::kGaussInput:
      return .9;
    case MechanismKind::kLaplace:
      return .6;
    case MechanismKind::kLapOutput:
      return .15;
    case MechanismKind::kGaussOutput:
      return .08;
    default:
      return 0;
  }
}

TEST_P(JointAudit, ReleaseStaysWithinClaim) {
  const PrivacyCost& cost = GetParam();
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackJointRelease(cost));
  const bool slow =
      TraitsOf(cost.mechanism).law == Law::kBoundedGaussian || cost.private_iterations > 2;
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = slow ? 2000 : 10'000}));
  EXPECT_LE(result.epsilon_lower, kEpsilon);
  EXPECT_GE(result.epsilon_lower, MinEpsilonFound(cost)) << result.best_attack;
}

TEST_P(JointAudit, SubjectStatesMechanismAndClaim) {
  const PrivacyCost& cost = GetParam();
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  ASSERT_OK_AND_ASSIGN(const Subject subject, AttackJointRelease(cost));
  EXPECT_THAT(subject.mechanism, StartsWith(absl::StrCat("joint release, ", traits.name)));
  EXPECT_EQ(subject.claim.epsilon, kEpsilon);
  EXPECT_EQ(subject.claim.delta, cost.delta.has_value() ? kDelta : 0);
  EXPECT_EQ(subject.claim.proven, !traits.published);
  EXPECT_EQ(subject.claim.radius.has_value(), traits.protects != MechanismTraits::Protects::kValue);
  for (const Attack& attack : subject.attacks)
    EXPECT_THAT(attack.description, HasSubstr("moves by"));
}

// Under the same bits the last attacked release is that of JointScheme::Release.
TEST_P(JointAudit, AttackedReleaseEqualsProduction) {
  const PrivacyCost& cost = GetParam();
  Anchors anchors{NormalRows(12, 4, 1), {}};
  for (int i = 0; i < 12; ++i) anchors.labels.push_back(i % 3);
  const PublicParameters parameters = *MakePublicParameters(kUuid, {}, anchors, {}, "vectors");
  const Target target{NormalRows(1, 4, 2), 1};
  const FundedLedger funded;
  SeededBits bits(7);
  ASSERT_OK_AND_ASSIGN(const JointRelease production,
                       JointScheme::Create(parameters, anchors)
                           ->Release(target, cost, ChargeTo(*funded.ledger, kUuid), bits));

  const JointSetting setting = *MakeJointSetting(parameters, anchors);
  const Matrix unit = *UnitRows("target", FloatMatrix(target.features));
  SeededBits again(7);
  ASSERT_OK_AND_ASSIGN(const TargetIndependentPart part,
                       DrawTargetIndependentPart(setting, cost, again));
  ASSERT_OK_AND_ASSIGN(const std::vector<FloatMatrix> attacked,
                       ReleaseIterations(setting, part, cost, 1, unit.row(0), again));
  EXPECT_EQ(static_cast<int64_t>(attacked.size()), cost.private_iterations);
  EXPECT_EQ(attacked.back(), production.rows);
  EXPECT_EQ(part.guarantee, production.guarantee);
}

INSTANTIATE_TEST_SUITE_P(Of, JointAudit, ::testing::ValuesIn(AuditedJointCosts(kEpsilon, kDelta)),
                         [](const auto& param_info) {
                           std::string name = TraitsOf(param_info.param.mechanism).name;
                           std::erase(name, '-');
                           const int64_t iterations = param_info.param.private_iterations;
                           return iterations == 1 ? name : absl::StrCat(name, "_", iterations);
                         });

TEST(AuditedJointCosts, CoverMechanismsAndCompositions) {
  const std::vector<PrivacyCost> costs = AuditedJointCosts(kEpsilon, kDelta);
  ASSERT_EQ(costs.size(), AllMechanisms().size() + 2);
  EXPECT_THAT(AttackJointRelease(costs[costs.size() - 2])->claim.source,
              StartsWith(std::string(kGaussianComposition)));
  for (const double delta : {1e-5, 1e-6, 1e-7}) {
    EXPECT_THAT(AttackJointRelease(AuditedJointCosts(kEpsilon, delta).back())->claim.source,
                StartsWith(std::string(kStrongComposition)));
  }
}

TEST(AttackJointRelease, DescriptionStatesMoveAndLimit) {
  const auto description = [](const PrivacyCost& cost) {
    return AttackJointRelease(cost)->attacks[0].description;
  };
  EXPECT_THAT(
      description({.epsilon = kEpsilon, .delta = kDelta}),
      ContainsRegex("moves by 0.9[678] of the sensitivity, so about 1.9[1-7] is to be found"));
  EXPECT_THAT(AttackJointRelease({.epsilon = kEpsilon, .delta = kDelta})->attacks[1].description,
              ContainsRegex("between two poles of anchors, .*; moves by 0.9[89] of the sens"));
  EXPECT_THAT(AttackJointRelease({.epsilon = kEpsilon, .delta = kDelta})->attacks[2].description,
              ContainsRegex("at the papers' settings; moves by 0.5[0-9]? of the sensitivity"));
  // In two columns: without the sqrt(k) of the L1 bound it would be 1.27.
  EXPECT_THAT(description({.epsilon = kEpsilon, .mechanism = MechanismKind::kLaplace}),
              ContainsRegex("labels outweigh the rest; moves by 0.9 of the sensitivity"));
  // The Lipschitz constant is twice the move of the sphere's tangents.
  EXPECT_THAT(description({.epsilon = kEpsilon,
                           .delta = kDelta,
                           .mechanism = MechanismKind::kGaussOutput,
                           .radius = .1}),
              ContainsRegex("0.1 apart, labels outweigh the rest; moves by 0.[45][0-9]? of the"));
}

}  // namespace
}  // namespace privatemail::client::audit

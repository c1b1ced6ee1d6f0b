#include "client/schemes/release_noise.h"

#include <cmath>

#include "client/privacy/accounting/composition.h"
#include "client/schemes/joint/joint_scheme.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::release_noise_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kDim = 6;

// Releases of one target over 24 random anchors of four classes, each with a ledger of its own.
class ReleaseNoise : public ::testing::Test {
 protected:
  ReleaseNoise() {
    anchors_.features = NormalRows(24, kDim, 1);
    for (int i = 0; i < 24; ++i) anchors_.labels.push_back(10 * (i % 4));
  }

  absl::StatusOr<JointRelease> Release(const PrivacyCost& cost) const {
    const FundedLedger funded;
    SeededBits bits(4);
    auto release =
        JointScheme::Create(*MakePublicParameters(kUuid, EmbeddingSettings{}, anchors_, {}, "v"),
                            anchors_)
            ->Release({Eigen::RowVectorXf::LinSpaced(kDim, 1, 2), 10}, cost,
                      ChargeTo(*funded.ledger, kUuid), bits);
    const auto charged = funded.ledger->Show(kUuid);
    EXPECT_EQ(charged->releases, release.ok() ? 1 : 0);
    // All iterations together cost this.
    EXPECT_EQ(charged->spent().epsilon, release.ok() ? cost.epsilon : 0);
    return release;
  }

  // A valid cost of one iteration.
  static PrivacyCost CostOf(const MechanismTraits& traits) {
    PrivacyCost cost{.epsilon = .1, .mechanism = traits.kind};
    if (traits.TakesDelta()) cost.delta = 1e-5;
    if (traits.protects != Protects::kValue) cost.radius = .5;
    return cost;
  }

  Anchors anchors_;
};

TEST_F(ReleaseNoise, SourceNamesCompositionTheorem) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    PrivacyCost cost = CostOf(traits);
    ASSERT_OK_AND_ASSIGN(const JointRelease one, Release(cost));
    EXPECT_THAT(one.guarantee.source, Not(HasSubstr("composition")));
    if (traits.protects == Protects::kInput) continue;  // takes one iteration only
    cost.private_iterations = 8;
    ASSERT_OK_AND_ASSIGN(const JointRelease eight, Release(cost));
    const absl::string_view theorem =
        traits.law == Law::kGaussian ? kGaussianComposition : kBasicComposition;
    EXPECT_EQ(eight.guarantee.source,
              absl::StrCat(theorem, " over 8 iterations of: ", one.guarantee.source));
    if (traits.law == Law::kGaussian) continue;
    cost.delta = .09;  // sqrt(2 * 8 ln(1/.09)) = 6.2: less than 8
    ASSERT_OK_AND_ASSIGN(const JointRelease strong, Release(cost));
    EXPECT_EQ(strong.guarantee.source,
              absl::StrCat(kStrongComposition, " over 8 iterations of: ", one.guarantee.source));
    EXPECT_EQ(strong.guarantee.delta, .09);
    if (traits.law == Law::kLaplace) {
      EXPECT_LT(strong.noise_stddev, .8 * eight.noise_stddev);
    }
    cost.delta = 1e-5;  // sqrt(2 * 8 ln(1e5)) = 13.6: more than 8, so the plain sum wins
    ASSERT_OK_AND_ASSIGN(const JointRelease plain, Release(cost));
    EXPECT_EQ(plain.guarantee, eight.guarantee);
    EXPECT_EQ(plain.guarantee.delta, 0) << "delta is charged without use";
  }
}

TEST_F(ReleaseNoise, SourceNamesProofOfSensitivity) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    ASSERT_OK_AND_ASSIGN(const JointRelease release, Release(CostOf(traits)));
    const std::string& source = release.guarantee.source;
    const bool printed_sensitivity = traits.kind == MechanismKind::kPublishedGaussian ||
                                     traits.kind == MechanismKind::kPublishedLaplace;
    EXPECT_EQ(source.find("known_anchors_sensitivity.h") != std::string::npos,
              traits.protects == Protects::kValue && !printed_sensitivity)
        << source;
    EXPECT_EQ(source.find("lipschitz.h") != std::string::npos, traits.protects == Protects::kOutput)
        << source;
    EXPECT_EQ(source.find("as published, not a proven guarantee") != std::string::npos,
              traits.published)
        << source;
    EXPECT_EQ(release.guarantee.neighbours == "as published: a row added", printed_sensitivity);
    EXPECT_EQ(release.guarantee.proven, !traits.published);
  }
}

TEST_F(ReleaseNoise, RadiusAboveSphereDiameterReturnsInvalidArgument) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.protects == Protects::kValue) continue;
    SCOPED_TRACE(traits.name);
    PrivacyCost cost = CostOf(traits);
    cost.radius = 2;
    ASSERT_OK_AND_ASSIGN(const JointRelease release, Release(cost));
    EXPECT_EQ(release.guarantee.radius, 2);
    cost.radius = 2.5;
    EXPECT_THAT(Release(cost), FailsWith(kInvalid,
                                         "radius must be at most 2, the diameter of the unit "
                                         "sphere that features lie on, but is 2.5"));
    cost.radius = std::nextafter(2., 3.);
    EXPECT_THAT(Release(cost), FailsWith(kInvalid, "radius"));
    cost.radius = INFINITY;
    EXPECT_THAT(Release(cost), FailsWith(kInvalid, "radius"));
  }
}

}  // namespace
}  // namespace privatemail::client::release_noise_test

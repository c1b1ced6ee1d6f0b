#include "client/schemes/joint/joint_scheme.h"

#include <cmath>
#include <optional>

#include "client/schemes/joint/joint_steps.h"
#include "common/base/validate.h"
#include "tests/testing/release_inputs.h"

namespace privatemail::client::joint_scheme_test {
namespace {

constexpr int kClasses = 4;
constexpr int kAnchors = 24;
constexpr int kDim = 6;

Anchors MakeAnchors(int n = kAnchors, unsigned seed = 1) {
  Anchors anchors{NormalRows(n, kDim, seed), {}};
  for (int i = 0; i < n; ++i) {
    anchors.labels.push_back(10 * (i % kClasses));
    anchors.features(i, i % kClasses) += 4;  // a class leans towards an axis of its own
  }
  return anchors;
}

PublicParameters Parameters(const Anchors& anchors) {
  return *MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors");
}

JointScheme MakeScheme() { return *JointScheme::Create(Parameters(MakeAnchors()), MakeAnchors()); }

Target TargetOf(int32_t label, unsigned seed) { return {NormalRows(1, kDim, seed), label}; }

class JointReleaseTest : public ::testing::Test {
 protected:
  absl::StatusOr<JointRelease> Release(const Target& target, const PrivacyCost& cost) {
    return scheme_.Release(target, cost, ChargeTo(*funded_.ledger, kUuid), bits_);
  }
  LedgerEntry Charged() const { return *funded_.ledger->Show(kUuid); }

  const PrivacyCost cost_{.epsilon = 1, .delta = 1e-5};
  const FundedLedger funded_;
  const JointScheme scheme_ = MakeScheme();
  SecureBits bits_;
};

TEST_F(JointReleaseTest, RepeatedReleasesDifferAndAreCharged) {
  ASSERT_OK_AND_ASSIGN(const JointRelease one, Release(TargetOf(10, 3), cost_));
  ASSERT_OK_AND_ASSIGN(const JointRelease two, Release(TargetOf(10, 3), cost_));
  EXPECT_NE(one.rows, two.rows);
  EXPECT_EQ(one.rows.rows(), kClasses + kAnchors);
  EXPECT_EQ(one.rows.cols(), 2);
  EXPECT_TRUE(one.guarantee.proven);
  EXPECT_EQ(Charged().releases, 2);
  EXPECT_EQ(Charged().spent().epsilon, 2);
}

TEST_F(JointReleaseTest, FailureWhileSamplingStaysCharged) {
  ExpectFailureWhileSamplingStaysCharged(funded_, [&](BitSource& bits) {
    return scheme_.Release(TargetOf(10, 3), {.epsilon = .1, .delta = 1e-6},
                           ChargeTo(*funded_.ledger, kUuid), bits);
  });
}

TEST_F(JointReleaseTest, RefusedReleaseIsNotCharged) {
  Target target = TargetOf(10, 3);
  EXPECT_THAT(Release(target, {}), FailsWith(kInvalid, "epsilon must be finite"));
  EXPECT_THAT(Release(target, {.epsilon = 1}), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(Release(target, {.epsilon = 1, .delta = 1e-5, .private_iterations = 0}),
              FailsWith(kInvalid, "private_iterations"));
  target.label = 11;
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "label must be one"));
  target = {Eigen::RowVectorXf::Ones(5), 10};
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "expected 6, got 5"));
  target = {Eigen::RowVectorXf::Zero(kDim), 10};
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "zero"));
  target.features[2] = std::nanf("");
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "nan"));
  EXPECT_THAT(Release(TargetOf(10, 3), {.epsilon = 101, .delta = 1e-5}),
              FailsWith(kExhausted, "budget must be left for epsilon 101"));
  EXPECT_EQ(Charged().releases, 0);
}

TEST_F(JointReleaseTest, PlacesAndKOutOfRangeAreRefusedBeforeCharge) {
  Target target = TargetOf(10, 3);
  for (const int64_t k : {int64_t{0}, int64_t{-3}, int64_t{1} << 40}) {
    EXPECT_THAT(scheme_.AllotClasses(target.features, k, 0),
                FailsWith(kInvalid, "k must be between 1 and 10000"));
  }
  EXPECT_THAT(scheme_.AllotClasses(target.features, 8, -1),
              FailsWith(kInvalid, "classes must be between 0 and"));
  target.places = {{.slot = kClasses, .places = 8}};
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "slot of places must be between 0"));
  target.places = {{.slot = 0, .places = 0}};
  EXPECT_THAT(Release(target, cost_), FailsWith(kInvalid, "places must be between 1"));
  // Ranked classes depend on the features, which this mechanism hides without the class.
  target.places = {{.slot = 0, .places = 8}};
  EXPECT_THAT(
      Release(target, {.epsilon = 1, .mechanism = *MechanismFromName("lap-output"), .radius = .5}),
      FailsWith(kInvalid, "places does not apply to lap-output"));
  EXPECT_EQ(Charged().releases, 0);
}

// Every mechanism by name, the printed ones included, charges what it promises and says what it
// protects.
TEST(JointRelease, TakesEveryMechanism) {
  const JointScheme scheme = MakeScheme();
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    const FundedLedger funded;
    SecureBits bits;
    PrivacyCost cost{.epsilon = 1, .mechanism = traits.kind};
    if (traits.TakesDelta()) cost.delta = 1e-5;
    const bool of_value = traits.protects == MechanismTraits::Protects::kValue;
    if (!of_value) cost.radius = .5;
    ASSERT_OK_AND_ASSIGN(
        const JointRelease release,
        scheme.Release(TargetOf(10, 3), cost, ChargeTo(*funded.ledger, kUuid), bits));
    EXPECT_EQ(release.guarantee.epsilon, 1);
    EXPECT_EQ(release.guarantee.delta, traits.TakesDelta() ? 1e-5 : 0);
    EXPECT_EQ(release.guarantee.proven, !traits.published);
    EXPECT_EQ(release.guarantee.radius.has_value(), !of_value);
    EXPECT_TRUE(release.rows.allFinite());
    EXPECT_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 1);
    cost.radius = of_value ? .5 : std::nan("");
    EXPECT_THAT(scheme.Release(TargetOf(10, 3), cost, ChargeTo(*funded.ledger, kUuid), bits),
                FailsWith(kInvalid, "radius"));
    EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 1);
  }
}

// An iteration that adds noise to the target alone can be inverted for the other slots' rows.
TEST(JointRelease, OwnRowsWithNoiseOnInputAreRefusedBeforeCharge) {
  const FundedLedger funded;
  SecureBits bits;
  const PrivacyCost cost{
      .epsilon = 1, .delta = 1e-5, .mechanism = *MechanismFromName("gauss-input"), .radius = .5};
  const std::pair<OwnRows, std::string> given[] = {
      {{.dummies = MakeAnchors()}, "dummies"},
      {{.anchors = MakeAnchors().features}, "own_anchors"}};
  for (const auto& [own, field] : given) {
    ASSERT_OK_AND_ASSIGN(const JointScheme scheme,
                         JointScheme::Create(Parameters(MakeAnchors()), MakeAnchors(), own));
    EXPECT_THAT(scheme.Release(TargetOf(10, 3), cost, ChargeTo(*funded.ledger, kUuid), bits),
                FailsWith(kInvalid, field + " does not apply to gauss-input"));
  }
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
}

// The client's model: four more columns, reflected at a hyperplane, and another length.
FloatMatrix ByOwnModel(const FloatMatrix& features) {
  FloatMatrix wide = FloatMatrix::Zero(features.rows(), features.cols() + 4);
  wide.leftCols(features.cols()) = features;
  const Eigen::RowVectorXf normal =
      NormalRows(1, static_cast<int>(wide.cols()), 5).row(0).normalized();
  return 5 * (wide - 2 * (wide * normal.transpose()) * normal);
}

TEST(OwnAnchors, OfAModelWithTheSameGeometryGiveTheSameRelease) {
  const FundedLedger funded;
  const Anchors anchors = MakeAnchors();
  const Anchors pool = MakeAnchors(8, 5);
  for (const bool with_pool : {false, true}) {
    OwnRows published, own{.anchors = ByOwnModel(anchors.features)};
    if (with_pool) {
      published.dummies = pool;
      own.dummies = Anchors{ByOwnModel(pool.features), pool.labels};
    }
    ASSERT_OK_AND_ASSIGN(const JointScheme expected,
                         JointScheme::Create(Parameters(anchors), anchors, published));
    ASSERT_OK_AND_ASSIGN(const JointScheme scheme,
                         JointScheme::Create(Parameters(anchors), anchors, own));
    using Radius = std::optional<double>;
    for (const auto& [mechanism, radius] :
         {std::pair("gaussian", Radius()), std::pair("lap-output", Radius(.5))}) {
      PrivacyCost cost{.epsilon = 1, .mechanism = *MechanismFromName(mechanism), .radius = radius};
      if (TraitsOf(cost.mechanism).TakesDelta()) cost.delta = 1e-5;
      const Target target = TargetOf(20, 3);
      SeededBits bits(4), same_bits(4);
      ASSERT_OK_AND_ASSIGN(const JointRelease one,
                           expected.Release(target, cost, ChargeTo(*funded.ledger, kUuid), bits));
      ASSERT_OK_AND_ASSIGN(const JointRelease other,
                           scheme.Release({ByOwnModel(target.features), target.label}, cost,
                                          ChargeTo(*funded.ledger, kUuid), same_bits));
      EXPECT_NEAR(other.sensitivity, one.sensitivity, 1e-4 * one.sensitivity) << mechanism;
      EXPECT_NEAR(other.noise_stddev, one.noise_stddev, 1e-4 * one.noise_stddev);
      EXPECT_LT((other.rows - one.rows).norm(), 1e-3 * one.rows.norm()) << mechanism;
    }
  }
}

TEST(OwnAnchors, InvalidRowsReturnInvalidArgument) {
  const Anchors anchors = MakeAnchors();
  const auto create = [&](const OwnRows& own) {
    return JointScheme::Create(Parameters(anchors), anchors, own).status();
  };
  FloatMatrix own = ByOwnModel(anchors.features);
  EXPECT_THAT(JointScheme::Create(Parameters(anchors), anchors, {.anchors = own})
                  ->AllotClasses(NormalRows(1, kDim, 1), 8, 1),
              FailsWith(kInvalid, "query has the wrong dimension: expected 10, got 6"));
  EXPECT_THAT(create({.anchors = own.topRows(23)}), FailsWith(kInvalid, "own_anchors must be 24"));
  EXPECT_THAT(create({.dummies = anchors, .anchors = own}),
              FailsWith(kInvalid, "dummies has the wrong dimension: expected 10, got 6"));
  own.row(4).setZero();
  EXPECT_THAT(create({.anchors = own}), FailsWith(kInvalid, "own_anchors row 4"));
  own(4, 0) = NAN;
  EXPECT_THAT(create({.anchors = own}), FailsWith(kInvalid, "own_anchors row 4"));
}

TEST(JointScheme, UnpublishedAnchorsReturnError) {
  const PublicParameters parameters = Parameters(MakeAnchors());
  Anchors other = MakeAnchors();
  other.features(3, 3) += 1;
  EXPECT_THAT(JointScheme::Create(parameters, other), FailsWith(kDataLoss, "digest"));
  EXPECT_THAT(JointScheme::Create(parameters, MakeAnchors(20)), FailsWith(kDataLoss, "24 rows"));
}

// A hostile server may publish such anchors with their digest.
TEST(JointScheme, AnchorLabelOutsideSlotsReturnsInvalidArgument) {
  const Anchors pool = MakeAnchors();
  Anchors anchors = MakeAnchors();
  PublicParameters parameters = Parameters(anchors);
  anchors.labels[5] = 7;
  parameters.anchor_digest = DigestOf(anchors);
  for (const std::optional<Anchors>& dummies : {std::optional<Anchors>(), std::optional(pool)}) {
    EXPECT_THAT(JointScheme::Create(parameters, anchors, {.dummies = dummies}),
                FailsWith(kInvalid, "anchors row 5: label must be one of"));
  }
}

TEST(JointScheme, PoolWithoutAClassReturnsInvalidArgument) {
  const PublicParameters parameters = Parameters(MakeAnchors());
  Anchors pool = MakeAnchors(8, 5);
  EXPECT_THAT(JointScheme::Create(parameters, MakeAnchors(), {.dummies = pool}), IsOk());
  pool.labels = {0, 0, 10, 10, 20, 20, 20, 0};
  EXPECT_THAT(JointScheme::Create(parameters, MakeAnchors(), {.dummies = pool}),
              FailsWith(kInvalid, "none of 30"));
  pool.labels[7] = 31;
  EXPECT_THAT(JointScheme::Create(parameters, MakeAnchors(), {.dummies = pool}),
              FailsWith(kInvalid, "dummies row 7"));
}

TEST(RadiusStats, CountsPairsByDistance) {
  const Matrix anchors = *UnitRows("anchors", NormalRows(300, 5, 1));
  std::vector<int64_t> classes;
  for (int i = 0; i < 300; ++i) classes.push_back(i % 7 == 0 ? 1 : 0);
  const RadiusStats stats = ComputeRadiusStats(anchors, classes, .8);
  RadiusStats expected{.radius = .8};
  for (int i = 0; i < 300; ++i) {
    for (int j = i + 1; j < 300; ++j) {
      const bool close = (anchors.row(i) - anchors.row(j)).norm() <= .8;
      if (classes[i] == classes[j]) {
        ++expected.same_class_pairs;
        expected.same_class_pairs_within += close;
      } else {
        ++expected.cross_class_pairs;
        expected.cross_class_pairs_within += close;
      }
    }
  }
  EXPECT_EQ(stats.same_class_pairs, expected.same_class_pairs);
  EXPECT_EQ(stats.cross_class_pairs, expected.cross_class_pairs);
  EXPECT_EQ(stats.same_class_pairs_within, expected.same_class_pairs_within);
  EXPECT_EQ(stats.cross_class_pairs_within, expected.cross_class_pairs_within);
  EXPECT_GT(stats.same_class_pairs_within, 0);
}

TEST(RadiusStats, ToStringGivesShares) {
  EXPECT_EQ(
      (RadiusStats{.radius = .5, .same_class_pairs = 200, .same_class_pairs_within = 6}).ToString(),
      "closer than 0.5: 3 % of pairs of one class, there are no pairs of two classes");
}

}  // namespace
}  // namespace privatemail::client::joint_scheme_test

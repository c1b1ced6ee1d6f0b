#include "privatemail/anchored_scheme.h"

#include <cmath>
#include <limits>

#include "tests/testing/release_inputs.h"

namespace privatemail::client::anchored_scheme_test {
namespace {

constexpr int kClasses = 4;
constexpr int kAnchors = 40;
constexpr int kDim = 6;

Anchors MakeAnchors() { return LeaningAnchors(kClasses, kAnchors, kDim); }

AnchoredScheme MakeScheme() {
  EmbeddingSettings settings;
  settings.alpha = 12;
  const Anchors anchors = MakeAnchors();
  return *AnchoredScheme::Create(*MakePublicParameters(kUuid, settings, anchors, {}, "vectors"),
                                 anchors);
}

Target TargetOf(int32_t label, unsigned seed) { return {NormalRows(1, kDim, seed), label}; }

const PrivacyCost kCost{.epsilon = 1, .delta = 1e-5};

TEST(AnchoredRelease, AnchorsAreFixedAndEverySlotIsNoisy) {
  const FundedLedger funded;
  const AnchoredScheme scheme = MakeScheme();
  SecureBits bits;
  ASSERT_OK_AND_ASSIGN(const AnchoredRelease one,
                       scheme.Release(TargetOf(10, 3), kCost, *funded.ledger, bits));
  ASSERT_OK_AND_ASSIGN(const AnchoredRelease two,
                       scheme.Release(TargetOf(30, 4), kCost, *funded.ledger, bits));
  ASSERT_EQ(one.rows.rows(), kClasses + kAnchors);
  ASSERT_EQ(one.noisy_slots.rows(), kClasses);
  EXPECT_EQ(one.rows.bottomRows(kAnchors), two.rows.bottomRows(kAnchors));
  EXPECT_TRUE((one.noisy_slots.array() != two.noisy_slots.array()).all());
  EXPECT_TRUE(one.guarantee.proven);
  EXPECT_EQ(funded.ledger->Show(kUuid)->spent().epsilon, 2);
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 2);
}

// At small epsilon noise dominates the rows. Tolerance: 5 standard deviations of the mean square,
// plus the rows' own share. False-alarm probability: below 1e-6 each.
TEST(AnchoredRelease, NoiseOfEverySlotHasStatedStddev) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {1e3, .1}), IsOk());
  const AnchoredScheme scheme = MakeScheme();
  SeededBits bits(2);
  Vector squares = Vector::Zero(kClasses);
  double stddev = 0;
  constexpr int kReleases = 400;
  for (int i = 0; i < kReleases; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const AnchoredRelease release,
        scheme.Release(TargetOf(20, 7), {.epsilon = .1, .delta = 1e-5}, *ledger, bits));
    squares += release.noisy_slots.cast<double>().rowwise().squaredNorm();
    stddev = release.noise_stddev;
    EXPECT_NEAR(release.sensitivity, std::sqrt(2), 1e-12);
  }
  for (int c = 0; c < kClasses; ++c) {
    const double mean_square = squares[c] / (2 * kReleases);
    // A chi-squared of 800 degrees has a relative deviation of .05; rows lie within 1/2.
    EXPECT_NEAR(mean_square, stddev * stddev, .25 * stddev * stddev + .5) << c;
  }
}

TEST(AnchoredRelease, FailureWhileSamplingStaysCharged) {
  const FundedLedger funded;
  const AnchoredScheme scheme = MakeScheme();
  ExpectFailureWhileSamplingStaysCharged(funded, [&](BitSource& bits) {
    return scheme.Release(TargetOf(10, 3), {.epsilon = .1, .delta = 1e-6}, *funded.ledger, bits);
  });
}

TEST(AnchoredRelease, RefusedReleaseIsNotCharged) {
  const FundedLedger funded;
  const AnchoredScheme scheme = MakeScheme();
  SecureBits bits;
  const auto release = [&](const Target& target, const PrivacyCost& cost) {
    return scheme.Release(target, cost, *funded.ledger, bits);
  };
  const Target good = TargetOf(10, 3);
  EXPECT_THAT(release(good, {.epsilon = 1, .delta = 1e-5, .radius = .5}),
              FailsWith(kInvalid,
                        "radius is of no use to gaussian: expected none, or one of the mechanisms "
                        "lap-output, gauss-output, gauss-input with it"));
  EXPECT_THAT(release(good, {.epsilon = 1, .mechanism = MechanismKind::kLapOutput}),
              FailsWith(kInvalid, "radius must be given for lap-output"));
  EXPECT_THAT(release(good, {.epsilon = 1, .mechanism = MechanismKind::kLapOutput, .radius = 2.5}),
              FailsWith(kInvalid, "radius must be"));
  EXPECT_THAT(release(good, {.epsilon = 1, .delta = 1e-5, .private_iterations = 2}),
              FailsWith(kInvalid, "private_iterations must be 1, but is 2"));
  for (const MechanismKind kind :
       {MechanismKind::kGaussInput, MechanismKind::kPublishedGaussian,
        MechanismKind::kPublishedLaplace, MechanismKind::kPublishedGaussOutput,
        MechanismKind::kPublishedGaussInput, MechanismKind::kPublishedBoundedGaussian}) {
    EXPECT_THAT(release(good, {.epsilon = 1, .delta = 1e-5, .mechanism = kind, .radius = 1}),
                FailsWith(kInvalid, "in the anchored scheme, but is"));
  }
  EXPECT_THAT(release(TargetOf(11, 3), kCost), FailsWith(kInvalid, "label must be one of"));
  EXPECT_THAT(release(good, {.epsilon = 101, .delta = 1e-5}),
              FailsWith(absl::StatusCode::kResourceExhausted, "asked epsilon 101"));
  EXPECT_EQ(funded.ledger->Show(kUuid)->releases, 0);
}

TEST(AnchoredScheme, ReleasesWithOwnDummies) {
  const FundedLedger funded;
  const Anchors anchors = MakeAnchors();
  const PublicParameters parameters =
      *MakePublicParameters(kUuid, EmbeddingSettings{}, anchors, {}, "vectors");
  const Anchors few{NormalRows(kClasses, kDim, 8), {0, 10, 20, 30}};
  ASSERT_OK_AND_ASSIGN(const AnchoredScheme scheme,
                       AnchoredScheme::Create(parameters, anchors, few));
  SecureBits bits;
  EXPECT_THAT(scheme.Release(TargetOf(10, 3), kCost, *funded.ledger, bits), IsOk());
}

}  // namespace
}  // namespace privatemail::client::anchored_scheme_test

// What a release draws, and what every iteration begins with.
#include <boost/math/distributions/chi_squared.hpp>
#include <random>

#include "client/release/joint_scheme.h"
#include "client/release/joint_steps.h"
#include "common/base/validate.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

constexpr int kClasses = 4;
constexpr int kOfClass = 6;
constexpr int kDim = 6;
constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";

FloatMatrix Normal(int n, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  return FloatMatrix::NullaryExpr(n, kDim, [&] { return normal(bits); });
}

// Labels 0, 10, 20, 30 in turn.
Anchors MakeAnchors() {
  Anchors anchors{Normal(kClasses * kOfClass, 1), {}};
  for (int i = 0; i < kClasses * kOfClass; ++i) anchors.labels.push_back(10 * (i % kClasses));
  return anchors;
}

PublicParameters Parameters() {
  return *MakePublicParameters(kUuid, EmbeddingSettings{}, MakeAnchors(), {}, "vectors");
}

JointSetting MakeSetting() { return *MakeJointSetting(Parameters(), MakeAnchors(), std::nullopt); }

// Replays a release of three iterations under the same bits: the charge draws none, so each
// iteration's noise comes out bit for bit.
TEST(JointDraws, EveryIterationStartsFromWhatTheOneBeforeReleased) {
  const JointSetting setting = MakeSetting();
  const FloatMatrix target = Normal(1, 77);
  for (const MechanismKind kind :
       {MechanismKind::kGaussian, MechanismKind::kLaplace, MechanismKind::kBoundedGaussian}) {
    SCOPED_TRACE(TraitsOf(kind).name);
    PrivacyCost cost{.epsilon = 1, .mechanism = kind, .private_iterations = 3};
    if (TraitsOf(kind).TakesDelta()) cost.delta = 1e-5;

    const TemporaryFolder folder;
    const auto ledger = *Ledger::Open(folder / "ledger");
    ASSERT_THAT(ledger->Grant(kUuid, {100, .1}), IsOk());
    ASSERT_OK_AND_ASSIGN(const JointScheme scheme,
                         JointScheme::Create(Parameters(), MakeAnchors()));
    SeededBits bits(9);
    ASSERT_OK_AND_ASSIGN(const JointRelease release,
                         scheme.Release({target, 10}, cost, *ledger, bits));

    SeededBits replayed(9);
    ASSERT_OK_AND_ASSIGN(const TargetFreePart part, DrawTargetFreePart(setting, cost, replayed));
    const Matrix rows = AssembleRows(setting, part, 1, UnitRows("target", target)->row(0));
    Matrix start = part.start;
    FloatMatrix released;
    for (int64_t i = 0; i < cost.private_iterations; ++i) {
      ASSERT_OK_AND_ASSIGN(const IterationNoise noise, NoiseFrom(setting, start, cost));
      ASSERT_OK_AND_ASSIGN(
          released, noise.mechanism->Release(PrivateIteration(setting, start, rows), replayed));
      start = released.cast<double>();
    }
    EXPECT_EQ(release.rows, released);
  }
}

// Chi-square of counts against equal expectations. A right law fails with a chance below 1e-8.
void ExpectUniform(const std::vector<double>& counts) {
  double total = 0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  ASSERT_GE(expected, 100);
  double statistic = 0;
  for (const double count : counts) statistic += std::pow(count - expected, 2) / expected;
  const boost::math::chi_squared law(static_cast<double>(counts.size() - 1));
  EXPECT_LT(statistic, boost::math::quantile(boost::math::complement(law, 1e-8)));
}

// Over 7,200 seeds: each slot's dummy is uniform among the class's candidates, and so is each pair
// of slots among the 36 pairs of candidates, as independent draws are. Seeded, so it always passes
// or never; under fresh bits a right release would fail with a chance below 1e-7 (10 comparisons).
// Catches a candidate whose chance is off by a fifth.
TEST(JointDraws, DummiesAreUniformAndSlotsDrawIndependently) {
  const JointSetting setting = MakeSetting();
  const PrivacyCost cost{.epsilon = 1, .delta = 1e-5};
  std::vector<std::vector<double>> of_slot(kClasses, std::vector<double>(kOfClass));
  std::vector<std::vector<double>> of_pair(kClasses * kClasses,
                                           std::vector<double>(kOfClass * kOfClass));
  for (uint64_t seed = 0; seed < 7'200; ++seed) {
    SeededBits bits(1'000'000 + seed);
    ASSERT_OK_AND_ASSIGN(const TargetFreePart part, DrawTargetFreePart(setting, cost, bits));
    ASSERT_EQ(part.dummies.size(), kClasses);
    std::vector<size_t> candidate;
    for (int64_t slot = 0; slot < kClasses; ++slot) {
      // Row i of the pool is of slot i % kClasses.
      const int64_t row = part.dummies[static_cast<size_t>(slot)];
      ASSERT_EQ(row % kClasses, slot);
      candidate.push_back(static_cast<size_t>(row / kClasses));
      ++of_slot[static_cast<size_t>(slot)].at(candidate.back());
    }
    for (size_t a = 0; a < kClasses; ++a) {
      for (size_t b = 0; b < a; ++b) {
        ++of_pair[kClasses * a + b].at(kOfClass * candidate[a] + candidate[b]);
      }
    }
  }
  for (size_t a = 0; a < kClasses; ++a) {
    SCOPED_TRACE(a);
    ExpectUniform(of_slot[a]);
    for (size_t b = 0; b < a; ++b) ExpectUniform(of_pair[kClasses * a + b]);
  }
}

}  // namespace
}  // namespace privatemail

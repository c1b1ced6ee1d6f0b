// Mistakes that others have made, built in on purpose: the audit must exit 1 for each.
#include <array>
#include <cstring>
#include <random>

#include "client/audit/audit.h"
#include "client/audit/joint_attack.h"
#include "client/audit/mechanism_attacks.h"
#include "client/privacy/additive_mechanism.h"
#include "client/privacy/calibration.h"
#include "client/release/joint_steps.h"
#include "common/numerics/smlq.h"
#include "common/numerics/tiled_affinity.h"
#include "tests/testing/matchers.h"

namespace privatemail::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-5;
const ReleaseShape kOneValue{.values = 1, .largest_value = 1};

std::unique_ptr<BitSource> Secure() { return std::make_unique<SecureBits>(); }

// The claim of the sound mechanism, whatever noise is really added.
Guarantee Claim() {
  return (*MakeMechanism(AuditParameters(MechanismKind::kGaussian, kEpsilon, kDelta), kOneValue))
      ->guarantee();
}

double SoundStddevPerUnit() { return *AnalyticGaussianStddev(kEpsilon, kDelta); }

void ExpectCaught(const Subject& subject, int64_t releases = 1'000'000) {
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = releases}));
  EXPECT_EQ(ExitCode({result}), 1) << result.epsilon_lower << " by " << result.attacked;
}

Subject WithStddevPerUnit(double stddev_per_unit) {
  return AttackMechanism("fault",
                         *MakeGaussianMechanism(stddev_per_unit, kDistance, kOneValue, Claim()),
                         kDistance / 2, Secure);
}

TEST(PlantedFault, NoneIsNotCaught) {
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(WithStddevPerUnit(SoundStddevPerUnit()), {}));
  EXPECT_EQ(ExitCode({result}), 0) << result.epsilon_lower << " by " << result.attacked;
}

TEST(PlantedFault, ADeviationFivePercentTooSmall) {
  ExpectCaught(WithStddevPerUnit(.95 * SoundStddevPerUnit()));
}

// Every law and every place for the noise: noise made for an epsilon whose deviation is 5 %
// smaller, under the claim of kEpsilon.
TEST(PlantedFault, ADeviationFivePercentTooSmallOfAnyProvenMechanism) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.published) continue;
    SCOPED_TRACE(traits.name);
    const auto stddev = [&](double epsilon) {
      return Calibrate(AuditParameters(traits.kind, epsilon, kDelta), 1)->stddev;
    };
    double low = kEpsilon;
    double high = 2 * kEpsilon;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (stddev(middle) > .95 * stddev(kEpsilon) ? low : high) = middle;
    }
    ASSERT_OK_AND_ASSIGN(Subject subject, AttackProductionMechanism(traits.kind, high, kDelta));
    subject.claim.epsilon = kEpsilon;
    ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {}));
    EXPECT_EQ(ExitCode({result}), 1) << result.epsilon_lower << " by " << result.attacked;
  }
}

TEST(PlantedFault, AVarianceUsedAsADeviation) {
  const double variance = std::pow(SoundStddevPerUnit() * kDistance, 2);
  ExpectCaught(WithStddevPerUnit(variance / kDistance), 10'000);
}

// Draws in single precision and adds. Not in double: doubles near kDistance are 2^-59 apart, which
// a float resolves below 2^-35 only, where about 1e-9 of releases are: too few for a million.
class FloatNoise final : public Mechanism {
 public:
  explicit FloatNoise(double stddev) : Mechanism(Claim()), stddev_(static_cast<float>(stddev)) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    uint64_t seed = 0;
    EXPECT_THAT(bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(&seed), sizeof(seed))), IsOk());
    std::minstd_rand generator(seed);
    std::normal_distribution<float> noise(0, stddev_);
    return FloatMatrix(
        values.cast<float>().unaryExpr([&](float v) { return v + noise(generator); }));
  }
  double noise_stddev() const override { return stddev_; }
  double NoiseBound(double) const override { return 0; }

 private:
  float stddev_;
};

TEST(PlantedFault, NoiseInSinglePrecision) {
  const auto mechanism = std::make_shared<FloatNoise>(SoundStddevPerUnit() * kDistance);
  ExpectCaught(AttackMechanism("fault", mechanism, kDistance / 2, Secure), 100'000);
}

// Reads ahead and lets a forked child have the rest.
class BufferedBits final : public BitSource {
 public:
  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    for (uint8_t& byte : bytes) {
      if (left_ == 0) {
        const absl::Status filled = SecureBits().Fill(absl::MakeSpan(buffer_));
        if (!filled.ok()) return filled;
        left_ = buffer_.size();
      }
      byte = buffer_[--left_];
    }
    return absl::OkStatus();
  }

 private:
  std::array<uint8_t, 1 << 16> buffer_;
  size_t left_ = 0;
};

TEST(PlantedFault, ABufferOfBitsSharedOverAFork) {
  ExpectCaught(AttackMechanism("fault",
                               std::shared_ptr<const Mechanism>(*MakeGaussianMechanism(
                                   SoundStddevPerUnit(), kDistance, kOneValue, Claim())),
                               kDistance / 2, [] { return std::make_unique<BufferedBits>(); }),
               10'000);
}

// The target's row carries its own label and the dummies those of the other classes, as in the
// authors' code: then the label graph, which is public, depends on the target.
TEST(PlantedFault, LabelsThatFollowTheTargetInsteadOfTheSlot) {
  constexpr int kRows = 8;
  constexpr double kDenominator = 72;  // the papers' bandwidth 6
  const Matrix rows = Matrix::Identity(kRows, kRows);
  const auto graph_of = [](int32_t target_label) {
    std::vector<int32_t> labels = {target_label, target_label == 0 ? 1 : 0};
    for (int i = 2; i < kRows; ++i) labels.push_back(i % 2);
    return LabelGraph(labels, LabelGraphKind::kDistance, kDenominator);
  };
  const auto trial = [&]() -> absl::StatusOr<JointTrial> {
    SecureBits bits;
    const Matrix start = *NormalStart(kRows, 2, 1e-8, bits);
    const auto iterate = [&](int32_t label) {
      return SmlqUpdate(start, TiledAffinity(rows, kDenominator), graph_of(label), 30).value();
    };
    const LabelGraph slotted = graph_of(0);
    const double bound = *ReplaceTargetSensitivity({.start = start,
                                                    .label_graph = slotted,
                                                    .alpha = 30,
                                                    .kernel_denominator = kDenominator,
                                                    .slots = 2},
                                                   2);
    return JointTrial{iterate(0), iterate(1),
                      *MakeGaussianMechanism(SoundStddevPerUnit(), bound,
                                             {.values = 2 * kRows, .largest_value = 1}, Claim())};
  };
  ExpectCaught({.mechanism = "fault",
                .claim = Claim(),
                .attacks = {OnJointTrials("a target of either class", trial, 20'000)}});
}

}  // namespace
}  // namespace privatemail::audit

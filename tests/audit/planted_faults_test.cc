// Planted faults in mechanisms, after published bugs: the audit must find more than the claim for
// each.
#include <array>
#include <random>

#include "client/audit/audit.h"
#include "client/audit/mechanism_attacks.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/calibration.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::audit {
namespace {

constexpr double kEpsilon = 2;
constexpr double kDelta = 1e-5;
const ReleaseShape kOneValue{.values = 1, .largest_value = 1};

// The claim of the sound mechanism.
Guarantee Claim() {
  return (*MakeMechanism(AuditParameters(MechanismKind::kGaussian, kEpsilon, kDelta), kOneValue))
      ->guarantee();
}

double SoundStddevPerUnit() { return *AnalyticGaussianStddev(kEpsilon, kDelta); }

void ExpectDetected(const Subject& subject, int64_t releases = 1'000'000) {
  ASSERT_OK_AND_ASSIGN(const Result result, RunAudit(subject, {.releases = releases}));
  EXPECT_GT(result.epsilon_lower, kEpsilon) << "by " << result.best_attack;
}

Subject WithStddevPerUnit(double stddev_per_unit) {
  return AttackMechanism("fault",
                         *MakeAdditiveMechanism(MechanismTraits::Law::kGaussian, stddev_per_unit,
                                                kDistance, kOneValue, Claim()),
                         kDistance / 2, MakeSecureBits);
}

// Noise of an epsilon whose stddev is 5 % smaller, under the claim of kEpsilon.
TEST(PlantedFault, DetectsStddevFivePercentTooSmallOfEveryProvenMechanism) {
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
    ExpectDetected(subject);
  }
}

TEST(PlantedFault, DetectsVarianceUsedAsStddev) {
  const double variance = std::pow(SoundStddevPerUnit() * kDistance, 2);
  ExpectDetected(WithStddevPerUnit(variance / kDistance), 10'000);
}

// The production noise, drawn again until it is within 3.5 standard deviations: P(value + noise
// > 3.5 standard deviations) is 0 for the one neighbour and 136 times the claimed delta for the
// other.
class CutNoise final : public Mechanism {
 public:
  CutNoise() : Mechanism(Claim()) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    while (true) {
      absl::StatusOr<FloatMatrix> released = sound_->Release(values, bits);
      if (!released.ok() || Largest(released->cast<double>() - values) <= 3.5) return released;
    }
  }
  absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const override {
    return sound_->ReleaseInDouble(values, bits);
  }
  double noise_stddev() const override { return sound_->noise_stddev(); }

 private:
  double Largest(const Matrix& noise) const { return noise.cwiseAbs().maxCoeff() / noise_stddev(); }

  std::shared_ptr<const Mechanism> sound_ = *MakeAdditiveMechanism(
      MechanismTraits::Law::kGaussian, SoundStddevPerUnit(), kDistance, kOneValue, Claim());
};

TEST(PlantedFault, DetectsNoiseCutAtThreeAndAHalfStandardDeviations) {
  const auto cut = std::make_shared<const CutNoise>();
  ASSERT_OK_AND_ASSIGN(const Result result,
                       RunAudit(AttackMechanism("fault", cut, kDistance / 2, MakeSecureBits), {}));
  EXPECT_GT(result.epsilon_lower, kEpsilon);
  EXPECT_THAT(result.best_attack, ::testing::HasSubstr("3.5 standard deviations"));
}

// Floating-point noise of one precision.
template <typename Real>
class FloatingPointNoise final : public Mechanism {
 public:
  explicit FloatingPointNoise(double stddev)
      : Mechanism(Claim()), stddev_(static_cast<Real>(stddev)) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    return FloatMatrix(Noisy(values, bits).template cast<float>());
  }
  absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const override {
    return Matrix(Noisy(values, bits).template cast<double>());
  }
  double noise_stddev() const override { return stddev_; }

 private:
  using Reals = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  Reals Noisy(const Matrix& values, BitSource& bits) const {
    uint64_t seed = 0;
    EXPECT_THAT(bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(&seed), sizeof(seed))), IsOk());
    std::mt19937_64 generator(seed);
    std::normal_distribution<Real> noise(0, stddev_);
    return values.cast<Real>().unaryExpr([&](Real v) { return v + noise(generator); });
  }

  Real stddev_;
};

template <typename Real>
Result AuditOfNoiseIn() {
  const auto mechanism =
      std::make_shared<FloatingPointNoise<Real>>(SoundStddevPerUnit() * kDistance);
  return *RunAudit(AttackMechanism("fault", mechanism, kDistance / 2, MakeSecureBits),
                   {.releases = 100'000});
}

TEST(PlantedFault, DetectsNoiseInSinglePrecision) {
  const Result result = AuditOfNoiseIn<float>();
  EXPECT_GT(result.epsilon_lower, kEpsilon);
  EXPECT_THAT(result.best_attack, ::testing::HasSubstr("between two"));
}

// Doubles near kDistance are 2^-59 apart, which a float resolves below 2^-35 only (1e-9 of
// releases): only the release in double reveals it.
TEST(PlantedFault, DetectsNoiseInDoublePrecision) {
  const Result result = AuditOfNoiseIn<double>();
  EXPECT_GT(result.epsilon_lower, kEpsilon);
  EXPECT_THAT(result.best_attack, ::testing::HasSubstr("in double between two doubles"));
}

// Reads ahead; a forked child inherits the buffer.
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

TEST(PlantedFault, DetectsBitBufferSharedOverFork) {
  ExpectDetected(AttackMechanism("fault",
                                 std::shared_ptr<const Mechanism>(*MakeAdditiveMechanism(
                                     MechanismTraits::Law::kGaussian, SoundStddevPerUnit(),
                                     kDistance, kOneValue, Claim())),
                                 kDistance / 2, [] { return std::make_unique<BufferedBits>(); }),
                 10'000);
}

}  // namespace
}  // namespace privatemail::client::audit

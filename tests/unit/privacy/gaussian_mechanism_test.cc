#include "client/privacy/additive_mechanism.h"

#include <cmath>
#include <limits>

#include "client/privacy/exact_sampling.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail {
namespace {

GaussianMechanism Make(double stddev_per_unit, double sensitivity, int64_t values,
                       double largest = 1) {
  return *GaussianMechanism::Create(stddev_per_unit, sensitivity, values, largest);
}

TEST(GaussianMechanism, AddsNeverLessThanAskedAndHardlyMore) {
  for (const double sensitivity : {1e-12, .01, 1.0, 1e9}) {
    for (const int64_t values : {1, 2200, 1 << 20}) {
      const double stddev = Make(3.7, sensitivity, values, 1e3 * sensitivity).noise_stddev();
      EXPECT_GE(stddev, 3.7 * sensitivity);
      EXPECT_LE(stddev, 3.7 * sensitivity * (1 + 1e-5));
    }
  }
}

// The noise must not depend on the value: what is left after the value is taken away is the same.
TEST(GaussianMechanism, NoiseIsBitIdenticalForOtherValuesUnderTheSameBits) {
  const GaussianMechanism mechanism = Make(1, 1, 6, 1e6);
  Matrix values(3, 2);
  values << 1, -2, 1000, 4096, -65536, .5;
  SeededBits one(5);
  SeededBits two(5);
  ASSERT_OK_AND_ASSIGN(const FloatMatrix noise, mechanism.Release(Matrix::Zero(3, 2), one));
  ASSERT_OK_AND_ASSIGN(const FloatMatrix sum, mechanism.Release(values, two));
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(sum.data()[i] - values.data()[i], noise.data()[i],
                1e-7 * (1 + std::abs(values.data()[i])));
  }
  uint8_t after_one = 0;
  uint8_t after_two = 0;
  ASSERT_THAT(one.Fill(absl::MakeSpan(&after_one, 1)), IsOk());
  ASSERT_THAT(two.Fill(absl::MakeSpan(&after_two, 1)), IsOk());
  EXPECT_EQ(after_one, after_two) << "another number of bits was drawn";
}

TEST(GaussianMechanism, ClipsWhatItMayNotRefuse) {
  const GaussianMechanism mechanism = Make(1e-6, 1, 3, 2);
  Matrix values(1, 3);
  values << 1e300, -INFINITY, std::numeric_limits<double>::quiet_NaN();
  SeededBits bits(1);
  ASSERT_OK_AND_ASSIGN(const FloatMatrix released, mechanism.Release(values, bits));
  EXPECT_NEAR(released(0, 0), 2, 1e-4);
  EXPECT_NEAR(released(0, 1), -2, 1e-4);
  EXPECT_NEAR(std::abs(released(0, 2)), 2, 1e-4);
}

TEST(GaussianMechanism, FailsWithItsBitsInsteadOfReleasingLess) {
  FailingBits bits(1);
  EXPECT_THAT(Make(1, 1, 4000).Release(Matrix::Zero(2000, 2), bits),
              FailsWith(absl::StatusCode::kUnavailable, "no bits"));
}

TEST(GaussianMechanism, BadParametersAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(GaussianMechanism::Create(nan, 1, 1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "stddev_per_unit"));
  EXPECT_THAT(GaussianMechanism::Create(1, nan, 1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "sensitivity must be finite and positive, but is nan"));
  EXPECT_THAT(GaussianMechanism::Create(1, 0, 1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "sensitivity"));
  EXPECT_THAT(GaussianMechanism::Create(1, 1, 0, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "values"));
  EXPECT_THAT(GaussianMechanism::Create(1, 1, 1, INFINITY),
              FailsWith(absl::StatusCode::kInvalidArgument, "largest_value"));
  EXPECT_THAT(GaussianMechanism::Create(1e8, 1, 1 << 28, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition, "grid"));
  SeededBits bits(1);
  EXPECT_THAT(Make(1, 1, 4).Release(Matrix::Zero(5, 1), bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "4 values"));
}

TEST(Mechanism, NamesAreReadBackAndOthersListed) {
  for (const Mechanism mechanism : {Mechanism::kGaussian, Mechanism::kPublishedGaussian}) {
    EXPECT_EQ(*MechanismFromName(NameOf(mechanism)), mechanism);
  }
  EXPECT_THAT(MechanismFromName("laplacian"),
              FailsWith(absl::StatusCode::kInvalidArgument, "published-gaussian"));
}

TEST(ExactSampling, RefusesDeviationsThatDoNotFit) {
  SeededBits bits(1);
  EXPECT_THAT(SampleDiscreteGaussian(1, 0, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev + 1, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev, bits), IsOk());
  EXPECT_THAT(SampleUniform({3, 0}, bits), FailsWith(absl::StatusCode::kInvalidArgument, "bound"));
}

TEST(SecureBits, TwoFillsDiffer) {
  SecureBits bits;
  std::array<uint8_t, 32> one{};
  std::array<uint8_t, 32> two{};
  ASSERT_THAT(bits.Fill(absl::MakeSpan(one)), IsOk());
  ASSERT_THAT(bits.Fill(absl::MakeSpan(two)), IsOk());
  EXPECT_NE(one, two);
}

}  // namespace
}  // namespace privatemail

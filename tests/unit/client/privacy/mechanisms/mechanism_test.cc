#include <cmath>
#include <limits>

#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::mechanism_test {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

// Valid parameters of each kind, for values at most 1 apart in its norm.
MechanismParameters ParametersOf(const MechanismTraits& traits) {
  MechanismParameters parameters{.kind = traits.kind, .epsilon = 1};
  if (traits.TakesDelta()) parameters.delta = 1e-5;
  if (traits.protects == Protects::kValue) parameters.sensitivity = 1;
  if (traits.protects != Protects::kValue) parameters.radius = 1;
  if (traits.protects == Protects::kOutput) parameters.lipschitz = 1;
  if (traits.law == Law::kBoundedGaussian) parameters.box = {{-1e3}, {1e3}};
  return parameters;
}

std::unique_ptr<const Mechanism> Make(const MechanismTraits& traits, int64_t values,
                                      double largest_value = 1e3) {
  auto mechanism = MakeMechanism(ParametersOf(traits), {values, largest_value});
  EXPECT_THAT(mechanism, IsOk()) << traits.name;
  return mechanism.ok() ? *std::move(mechanism) : nullptr;
}

TEST(Mechanism, NoiseIsAtLeastCalibrated) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    for (const int64_t values : {1, 500}) {
      ASSERT_OK_AND_ASSIGN(const Calibration noise, Calibrate(ParametersOf(traits), values));
      const auto mechanism = Make(traits, values);
      EXPECT_GE(mechanism->noise_stddev(), noise.stddev * (1 - 1e-15));
      EXPECT_LE(mechanism->noise_stddev(), noise.stddev * (1 + 1e-5));
      EXPECT_EQ(mechanism->guarantee().epsilon, 1);
      EXPECT_EQ(mechanism->guarantee().delta, traits.TakesDelta() ? 1e-5 : 0);
      EXPECT_EQ(mechanism->guarantee().proven, !traits.published);
      EXPECT_EQ(mechanism->guarantee().radius.has_value(), traits.protects != Protects::kValue);
    }
  }
}

// The ledger adds up mu, so it must not be below sensitivity / stddev.
TEST(Mechanism, MuIsSensitivityOverStddev) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    MechanismParameters parameters = ParametersOf(traits);
    if (traits.protects == Protects::kValue) parameters.sensitivity = 3.7;
    if (traits.protects == Protects::kOutput) parameters.lipschitz = 3.7;
    const double distance = traits.protects == Protects::kInput ? 1 : 3.7;
    for (const double epsilon : {1e-3, .5, 8.0}) {
      parameters.epsilon = epsilon;
      ASSERT_OK_AND_ASSIGN(const Calibration noise, Calibrate(parameters, 5));
      const bool exact = traits.law == Law::kGaussian && !traits.published;
      ASSERT_EQ(noise.guarantee.gaussian_mu.has_value(), exact);
      if (!exact) continue;
      const double of_sensitivity = *noise.guarantee.gaussian_mu * noise.stddev / distance;
      EXPECT_NEAR(of_sensitivity, 1, 1e-14);
      EXPECT_GE(of_sensitivity, 1);
      ASSERT_OK_AND_ASSIGN(const auto mechanism, MakeMechanism(parameters, {5, 1e3}));
      EXPECT_EQ(mechanism->guarantee().gaussian_mu, noise.guarantee.gaussian_mu);
    }
  }
}

// release - value is equal for different values under the same bits.
TEST(Mechanism, NoiseDoesNotDependOnValues) {
  Matrix values(3, 2);
  values << 1, -2, 100, 409.5, -655.25, .5;
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.law == Law::kBoundedGaussian) continue;  // its noise leans away from the box's ends
    SCOPED_TRACE(traits.name);
    const auto mechanism = Make(traits, 6);
    SeededBits one(5);
    SeededBits two(5);
    ASSERT_OK_AND_ASSIGN(const FloatMatrix noise, mechanism->Release(Matrix::Zero(3, 2), one));
    ASSERT_OK_AND_ASSIGN(const FloatMatrix sum, mechanism->Release(values, two));
    for (int i = 0; i < 6; ++i) {
      EXPECT_NEAR(sum.data()[i] - values.data()[i], noise.data()[i],
                  1e-6 * (1 + std::abs(values.data()[i])));
    }
    uint8_t after_one = 0;
    uint8_t after_two = 0;
    ASSERT_THAT(one.Fill(absl::MakeSpan(&after_one, 1)), IsOk());
    ASSERT_THAT(two.Fill(absl::MakeSpan(&after_two, 1)), IsOk());
    EXPECT_EQ(after_one, after_two) << "another number of bits was drawn";
  }
}

// A point of the power-of-two grid, whose step is at least 2^-30 of the width where 64 bits allow.
TEST(Mechanism, ReleaseInDoubleIsOnGridAndRoundsToRelease) {
  const Matrix values = Matrix::Constant(50, 2, M_PI);
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    const auto mechanism = Make(traits, values.size());
    SeededBits one(6);
    SeededBits two(6);
    ASSERT_OK_AND_ASSIGN(const Matrix points, mechanism->ReleaseInDouble(values, one));
    ASSERT_OK_AND_ASSIGN(const FloatMatrix floats, mechanism->Release(values, two));
    EXPECT_EQ(points.cast<float>(), floats);
    EXPECT_NE(points, floats.cast<double>());
    const double step = std::exp2(std::ilogb(mechanism->noise_stddev() / M_SQRT2) - 30);
    for (const double point : points.reshaped()) EXPECT_EQ(std::fmod(point, step), 0);
    EXPECT_THAT(mechanism->ReleaseInDouble(Matrix::Zero(1, 3), one), FailsWith(kInvalid, "got 3"));
  }
}

TEST(Mechanism, OutOfRangeValuesAreClipped) {
  Matrix values(1, 3);
  values << 1e300, -INFINITY, std::numeric_limits<double>::quiet_NaN();
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    const auto mechanism = Make(traits, 3);
    const double reach = 20 * mechanism->noise_stddev();  // beyond: below 1e-12
    SeededBits bits(1);
    ASSERT_OK_AND_ASSIGN(const FloatMatrix released, mechanism->Release(values, bits));
    EXPECT_NEAR(released(0, 0), 1000, reach);
    EXPECT_NEAR(released(0, 1), -1000, reach);
    EXPECT_NEAR(std::abs(released(0, 2)), 1000, reach);
  }
}

TEST(Mechanism, FailingBitSourceReturnsItsError) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    for (const int calls : {0, 1, 2, 5}) {
      FailingBits bits(calls);
      EXPECT_THAT(Make(traits, 4000)->Release(Matrix::Zero(2000, 2), bits),
                  FailsWith(kUnavailable, "no bits"))
          << traits.name << " after " << calls;
    }
  }
}

// Every field that a kind uses, as NaN, and every field that it does not use, set.
TEST(Mechanism, BadMissingAndUnusedParametersAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const MechanismTraits& traits : AllMechanisms()) {
    SCOPED_TRACE(traits.name);
    const auto refusal = [&](auto change) {
      MechanismParameters parameters = ParametersOf(traits);
      change(parameters);
      const absl::Status calibrated = Calibrate(parameters, 2).status();
      EXPECT_EQ(MakeMechanism(parameters, {2, 1e3}).status(), calibrated);
      EXPECT_EQ(calibrated.code(), absl::StatusCode::kInvalidArgument);
      return std::string(calibrated.message());
    };
    using ::testing::HasSubstr;
    EXPECT_THAT(refusal([&](auto& p) { p.epsilon = nan; }),
                HasSubstr("epsilon must be finite and positive, but is nan"));
    EXPECT_THAT(refusal([&](auto& p) { p.epsilon = -1; }), HasSubstr("epsilon"));
    EXPECT_THAT(refusal([&](auto& p) { p.delta = traits.TakesDelta() ? 1 : .1; }),
                HasSubstr("delta"));
    const bool of_value = traits.protects == Protects::kValue;
    EXPECT_THAT(refusal([&](auto& p) { p.sensitivity = of_value ? 0 : 1; }),
                HasSubstr("sensitivity"));
    EXPECT_THAT(refusal([&](auto& p) { p.radius = of_value ? 1 : nan; }), HasSubstr("radius"));
    EXPECT_THAT(
        refusal([&](auto& p) { p.lipschitz = traits.protects == Protects::kOutput ? nan : 1; }),
        HasSubstr("lipschitz"));
    EXPECT_THAT(refusal([&](auto& p) {
                  p.box = traits.law == Law::kBoundedGaussian ? Box{} : Box{{0}, {1}};
                }),
                HasSubstr("box"));
  }
  MechanismParameters bounded{.kind = MechanismKind::kBoundedGaussian, .epsilon = 1};
  bounded.sensitivity = 1;
  bounded.box = {{0, 0, 0}, {1, 1, 1}};
  EXPECT_THAT(Calibrate(bounded, 2), FailsWith(kInvalid, "one for each of the 2 values"));
  EXPECT_THAT(MakeMechanism(ParametersOf(AllMechanisms()[0]), {0, 1}),
              FailsWith(kInvalid, "number of values"));
  EXPECT_THAT(MakeMechanism(ParametersOf(AllMechanisms()[0]), {1, INFINITY}),
              FailsWith(kInvalid, "largest_value"));
}

TEST(Mechanism, ValuesBeyondGridOrFloatAreRefused) {
  EXPECT_THAT(MakeAdditiveMechanism(MechanismTraits::Law::kGaussian, 1e8, 1, {1 << 28, 1}, {}),
              FailsWith(kFailedPrecondition, "grid"));
  EXPECT_THAT(MakeAdditiveMechanism(MechanismTraits::Law::kLaplace, 1, 1e-12, {1, 1e30}, {}),
              FailsWith(kFailedPrecondition, "grid"));
  EXPECT_THAT(MakeAdditiveMechanism(MechanismTraits::Law::kGaussian, 1, 1e37, {1, 1}, {}),
              FailsWith(kFailedPrecondition, "32-bit float"));
}

// One side per value. The noise is so wide that a side has a few hundred steps, whose ends are
// drawn often.
TEST(Mechanism, BoxOnTheGridIsInsideTheGivenOne) {
  ASSERT_OK_AND_ASSIGN(const auto mechanism, MakeMechanism({.kind = MechanismKind::kBoundedGaussian,
                                                            .epsilon = 1e-9,
                                                            .sensitivity = 100,
                                                            .box = {{.1, -.7}, {.3, -.4}}},
                                                           {2, .7}));
  SeededBits bits(5);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_OK_AND_ASSIGN(const Matrix released,
                         mechanism->ReleaseInDouble(Matrix{{.2, i % 3 - 1.}}, bits));
    EXPECT_GE(released(0, 0), .1);
    EXPECT_LE(released(0, 0), .3);
    EXPECT_GE(released(0, 1), -.7);
    EXPECT_LE(released(0, 1), -.4);
    // This is the form that is sent.
    ASSERT_OK_AND_ASSIGN(const FloatMatrix sent, mechanism->Release(Matrix{{.2, -.5}}, bits));
    EXPECT_TRUE(sent(0, 0) >= .1 && sent(0, 0) <= .3 && sent(0, 1) >= -.7 && sent(0, 1) <= -.4);
  }
}

TEST(Mechanism, NamesRoundTrip) {
  for (const MechanismTraits& traits : AllMechanisms()) {
    EXPECT_EQ(*MechanismFromName(traits.name), traits.kind);
    EXPECT_EQ(&TraitsOf(traits.kind), &traits);
  }
  EXPECT_THAT(MechanismFromName("laplacian"), FailsWith(kInvalid, "published-gaussian"));
}

}  // namespace
}  // namespace privatemail::client::mechanism_test

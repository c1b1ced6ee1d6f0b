#include "client/privacy/exact_sampling.h"

#include <array>

#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail {
namespace {

TEST(ExactSampling, RefusesWhatDoesNotFit) {
  SeededBits bits(1);
  EXPECT_THAT(SampleDiscreteGaussian(1, 0, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev + 1, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev, bits), IsOk());
  EXPECT_THAT(SampleDiscreteLaplace(1, 0, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "scale"));
  EXPECT_THAT(SampleDiscreteLaplace(1, kMaxDiscreteScale + 1, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "scale"));
  EXPECT_THAT(SampleDiscreteLaplace(1, kMaxDiscreteScale, bits), IsOk());
  EXPECT_THAT(SampleTruncatedGaussian({{0, 5, 6}}, 1, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "6 in [0, 5]"));
  EXPECT_THAT(SampleTruncatedGaussian({{0, int64_t{1} << 62, 1}}, kMaxDiscreteStddev, bits),
              IsOk());
  EXPECT_THAT(SampleTruncatedGaussian({{0, (int64_t{1} << 62) + 1, 1}}, 1, bits),
              FailsWith(absl::StatusCode::kInvalidArgument, "2^62"));
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

#include "client/privacy/sampling/exact_sampling.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/testing/matchers.h"
#include "tests/testing/seeded_bits.h"

namespace privatemail::client::exact_sampling_test {
namespace {

TEST(ExactSampling, BadParametersAreNamed) {
  SeededBits bits(1);
  EXPECT_THAT(SampleDiscreteGaussian(1, 0, bits), FailsWith(kInvalid, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev + 1, bits),
              FailsWith(kInvalid, "stddev"));
  EXPECT_THAT(SampleDiscreteGaussian(1, kMaxDiscreteStddev, bits), IsOk());
  EXPECT_THAT(SampleDiscreteLaplace(1, 0, bits), FailsWith(kInvalid, "scale"));
  EXPECT_THAT(SampleDiscreteLaplace(1, kMaxDiscreteScale + 1, bits), FailsWith(kInvalid, "scale"));
  EXPECT_THAT(SampleDiscreteLaplace(1, kMaxDiscreteScale, bits), IsOk());
  EXPECT_THAT(SampleTruncatedGaussian({{0, 5, 6}}, 1, bits), FailsWith(kInvalid, "6 in [0, 5]"));
  EXPECT_THAT(SampleTruncatedGaussian({{0, int64_t{1} << 62, 1}}, kMaxDiscreteStddev, bits),
              IsOk());
  EXPECT_THAT(SampleTruncatedGaussian({{0, (int64_t{1} << 62) + 1, 1}}, 1, bits),
              FailsWith(kInvalid, "2^62"));
  EXPECT_THAT(SampleUniform({3, 0}, bits), FailsWith(kInvalid, "bound"));
}

TEST(ExactSampling, FailingBitSourceReturnsItsError) {
  for (const int calls : {0, 1}) {
    FailingBits bits(calls);
    EXPECT_THAT(SampleDiscreteGaussian(1000, 100, bits), FailsWith(kUnavailable, "no bits"));
    EXPECT_THAT(SampleDiscreteLaplace(1000, 100, bits), FailsWith(kUnavailable, "no bits"));
    EXPECT_THAT(SampleUniform(std::vector<uint64_t>(1000, 3), bits),
                FailsWith(kUnavailable, "no bits"));
    EXPECT_THAT(SampleTruncatedGaussian(std::vector<TruncatedCentre>(1000, {-9, 9, 0}), 100, bits),
                FailsWith(kUnavailable, "no bits"));
  }
}

// The given words, then seeded ones: a sampler reads more than it uses.
class ScriptedBits final : public BitSource {
 public:
  explicit ScriptedBits(std::vector<uint64_t> words) : words_(std::move(words)) {}

  absl::Status Fill(absl::Span<uint8_t> bytes) override {
    const absl::Status filled = rest_.Fill(bytes);
    const size_t scripted = std::min(bytes.size(), 8 * words_.size());
    std::memcpy(bytes.data(), words_.data(), scripted);
    words_.erase(words_.begin(), words_.begin() + static_cast<int64_t>(scripted / 8));
    return filled;
  }

 private:
  std::vector<uint64_t> words_;
  SeededBits rest_{1};
};

// Every 64-bit digit of the fraction 1/3.
constexpr uint64_t kThird = 0x5555555555555555;
constexpr uint64_t kLow = 0;
constexpr uint64_t kHigh = ~uint64_t{0};
// Words that give a Laplace draw of scale 3 no whole scale, and a plus sign.
constexpr uint64_t kNoWholeScale[] = {kLow, kLow, kHigh};
constexpr uint64_t kPlus = 0;

// A uniform real of these digits below 1/3? Decided by a Laplace draw of scale 3 that starts from 1
// and keeps it with probability exp(-1/3): at once where the real is not below 1/3; where it is,
// the next event has probability 1/3 / 2, here it fails, and the draw starts anew, from 2.
int64_t DrawByComparisonWithAThird(const std::vector<uint64_t>& digits, bool below,
                                   uint64_t scale = 3) {
  std::vector<uint64_t> words = {1};
  words.insert(words.end(), digits.begin(), digits.end());
  if (below) words.insert(words.end(), {kHigh, 2, kHigh});
  words.insert(words.end(), std::begin(kNoWholeScale), std::end(kNoWholeScale));
  words.push_back(kPlus);
  ScriptedBits bits(words);
  return SampleDiscreteLaplace(1, scale, bits)->front();
}

// A word that does not decide a comparison is followed by another, and one that does is the last.
TEST(ExactSampling, UndecidedEventDrawsMoreWords) {
  for (const size_t open_digits : {0, 1, 2, 5}) {
    SCOPED_TRACE(open_digits);
    std::vector<uint64_t> digits(open_digits, kThird);
    for (const uint64_t last : {kThird + 1, kHigh}) {
      digits.push_back(last);
      EXPECT_EQ(DrawByComparisonWithAThird(digits, false), 1) << last;
      digits.pop_back();
    }
    for (const uint64_t last : {kThird - 1, kLow}) {
      digits.push_back(last);
      EXPECT_EQ(DrawByComparisonWithAThird(digits, true), 2) << last;
      digits.pop_back();
    }
  }
}

// 2^64 is 2 more than a multiple of 7, so after the first digit of 1/7 comes the first of 2/7.
TEST(ExactSampling, UndecidedEventComparesTheRemainder) {
  constexpr uint64_t kFirst = 0x2492492492492492, kSecond = 0x4924924924924924;
  EXPECT_EQ(DrawByComparisonWithAThird({kFirst, kSecond - 1}, true, 7), 2);
  EXPECT_EQ(DrawByComparisonWithAThird({kFirst, kSecond + 1}, false, 7), 1);
}

// Each draw is 1 before its sign.
TEST(ExactSampling, SignsUseEachBitOfAWordOnce) {
  constexpr uint64_t kSigns[] = {0x8d2c61f0375ae9b4, uint64_t{1} << 63};
  std::vector<uint64_t> words;
  for (int i = 0; i < 65; ++i) {
    words.insert(words.end(), {1, kHigh});
    words.insert(words.end(), std::begin(kNoWholeScale), std::end(kNoWholeScale));
    if (i % 64 == 0) words.push_back(kSigns[i / 64]);
  }
  ScriptedBits bits(words);
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> draws, SampleDiscreteLaplace(65, 3, bits));
  for (size_t i = 0; i < draws.size(); ++i) {
    EXPECT_EQ(draws[i], kSigns[i / 64] >> (63 - i % 64) & 1 ? -1 : 1) << i;
  }
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
}  // namespace privatemail::client::exact_sampling_test

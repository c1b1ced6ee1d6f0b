#include "common/image/score_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "common/items/quantised_row.h"
#include "common/numerics/neighbors.h"

namespace privatemail::score_shares_test {
namespace {

// Oracles: `openssl enc -aes-128-ctr` of zeros from counter 0. The key is that of NIST SP 800-38A
// appendix F; the first block is also in RFC 4493 section 4, AES-128(key, 0).
TEST(ScoreShares, SeedExpandsByAesInCounterMode) {
  const std::string seed = absl::HexStringToBytes("2b7e151628aed2a6abf7158809cf4f3c");
  const std::string stream = absl::HexStringToBytes(
      "7df76b0c1ab899b33e42f047b91b546f57127d4034b1bebfaef466b9c7726fc6973f2ef34879e2027f1734303ff2"
      "1f89");
  const std::vector<uint32_t> words = ExpandScoreSeed(seed, 11);
  ASSERT_EQ(words.size(), 11u);
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t expected = 0;  // little-endian
    for (size_t byte = 4; byte-- > 0;) {
      expected = expected << 8 | static_cast<uint8_t>(stream[4 * i + byte]);
    }
    EXPECT_EQ(words[i], expected) << i;
  }
}

TEST(ScoreShares, SharesAreSentAsTheirMiddleBits) {
  EXPECT_EQ(SentScore(0x3fffffff), 0xffffffU);
  EXPECT_EQ(SentScore(0xc000003f), 0u);
  EXPECT_EQ(SentScore(64), 1u);
}

// The rows of greatest product within rounding: all values half a step above a multiple.
TEST(ScoreShares, LargestProductsStayBelowTheBound) {
  for (const int64_t dim : {int64_t{1}, int64_t{2}, int64_t{128}, int64_t{4'097}, kMaxScoreDim}) {
    const RowVector even = RowVector::Constant(dim, 1 / std::sqrt(static_cast<double>(dim)));
    // Rounding upwards everywhere adds the most: the largest multiple plus one half, scaled down
    // to length 1 by a last value.
    RowVector upwards = even;
    const double step = (std::floor(upwards[0] * kScoreScale - .5) + .500001) / kScoreScale;
    upwards.setConstant(step);
    upwards[0] = std::sqrt(std::max(0., 1 - (static_cast<double>(dim) - 1) * step * step));
    RowVector unit = RowVector::Zero(dim);
    unit[0] = 1;
    for (const RowVector& row : {even, upwards, unit}) {
      const std::vector<int16_t> values = QuantiseUnitRow(row.normalized());
      int64_t product = 0;
      for (const int16_t value : values) product += int64_t{value} * value;
      const double length = kScoreScale + std::sqrt(static_cast<double>(dim)) / 2;
      EXPECT_LE(static_cast<double>(product), length * length) << dim;
      EXPECT_LE(product, 273'000'000) << dim;
      EXPECT_LT(product, (int64_t{1} << 29) - 128) << dim;
    }
  }
}

}  // namespace
}  // namespace privatemail::score_shares_test

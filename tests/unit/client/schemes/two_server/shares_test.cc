#include "client/schemes/two_server/shares.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "common/image/score_shares.h"

namespace privatemail::client {
namespace {

// Exact bounds of section 9: v in [64 m, 64 m + 126].
void ExpectRecovered(int64_t product, uint32_t share_a) {
  const auto share_b = static_cast<uint32_t>(product) - share_a;
  const double cosine = CombineScores(SentScore(share_a), SentScore(share_b));
  const double exact = static_cast<double>(product) / (1 << 28);
  EXPECT_LE(cosine, exact);
  EXPECT_GE(cosine, exact - 126. / (1 << 28)) << product << " with share " << share_a;
  EXPECT_LT(126. / (1 << 28), 4.7e-7);
}

TEST(Shares, SumOfSentBitsIsTheProduct) {
  constexpr int64_t kBound = 273'000'000;  // B of section 9
  constexpr uint32_t kEdges[] = {0,          1,          63,         64,         65,
                                 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff,
                                 0xffffffc0, 0x3fffffc0, 0x1fffffff, 0x20000000};
  for (const int64_t product :
       {-kBound, -kBound + 1, -int64_t{1} << 28, int64_t{-65}, int64_t{-64}, int64_t{-1},
        int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{1} << 28, kBound - 1, kBound}) {
    for (const uint32_t share : kEdges) ExpectRecovered(product, share);
  }
  std::mt19937 bits(1);
  std::uniform_int_distribution<int64_t> products(-kBound, kBound);
  for (int i = 0; i < 100'000; ++i) ExpectRecovered(products(bits), bits());
}

}  // namespace
}  // namespace privatemail::client

#include "client/seeded_bits/seeded_bits.h"

#include <array>
#include <random>
#include <set>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

TEST(SeededBits, AreTheWordsOfTheStandardsGenerator) {
  SeededBits bits(7);
  std::array<uint8_t, 12> bytes = {};
  ASSERT_THAT(bits.Fill(absl::MakeSpan(bytes)), IsOk());
  std::mt19937_64 generator(7);
  const uint64_t first = generator();
  const uint64_t second = generator();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(bytes[i], (first >> (8 * i)) & 0xff);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[8 + i], (second >> (8 * i)) & 0xff);
}

TEST(SeedOf, DiffersWithThePartTheSeedAndTheNumber) {
  std::set<uint64_t> seeds;
  for (const char* part : {"", "a", "b", "ab", "ba"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (uint64_t number = 0; number < 20; ++number) seeds.insert(SeedOf(part, seed, number));
    }
  }
  EXPECT_EQ(seeds.size(), 5u * 20 * 20);
  EXPECT_EQ(SeedOf("a", 1, 2), SeedOf("a", 1, 2));
}

}  // namespace
}  // namespace privatemail::client

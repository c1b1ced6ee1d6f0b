// The inputs of lattice_golden.json, which make_lattice_golden.py draws from streams by name.
#ifndef PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_STREAMS_H_
#define PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_STREAMS_H_

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/digests.h"
#include "common/lattice/ring.h"
#include "tests/golden/golden.h"

namespace privatemail::lattice {

using Polynomial = std::vector<int64_t>;

inline std::string GoldenBytes(const std::string& name, size_t size) {
  std::string bytes(size, '\0');
  EXPECT_TRUE(privatemail::Shake128("golden " + name, reinterpret_cast<uint8_t*>(bytes.data()),
                                    bytes.size()));
  return bytes;
}

// The words of 8 bytes of a stream of make_lattice_golden.py.
inline std::vector<uint64_t> GoldenWords(const std::string& name, size_t count) {
  const std::string bytes = GoldenBytes(name, 8 * count);
  std::vector<uint64_t> words(count, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    words[i / 8] |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * (i % 8));
  }
  return words;
}

inline Polynomial Stream(const std::string& name, size_t count, int64_t bound) {
  Polynomial values;
  for (const uint64_t word : GoldenWords(name, count)) {
    values.push_back(static_cast<int64_t>(word % static_cast<uint64_t>(2 * bound + 1)) - bound);
  }
  return values;
}

// The lowest bits of a stream, as make_lattice_golden.py draws rounded answers.
inline Polynomial RoundedStream(const std::string& name, int bits) {
  Polynomial values = Stream(name, kDegree, int64_t{1} << 40);
  for (int64_t& value : values) value &= (int64_t{1} << bits) - 1;
  return values;
}

inline Polynomial BinomialErrors(const std::string& name) {
  constexpr uint64_t kOnes = (1 << 21) - 1;
  Polynomial values;
  for (const uint64_t word : GoldenWords(name, kDegree)) {
    values.push_back(std::popcount(word & kOnes) - std::popcount(word >> 21 & kOnes));
  }
  return values;
}

inline std::string HexSha256(const std::string& bytes) {
  return absl::BytesToHexString(Sha256::Of(bytes));
}

// `expected` has some values, by their index.
template <typename Values>
void ExpectValues(const Values& values, const nlohmann::json& expected) {
  ASSERT_GT(expected.size(), 0u);
  for (const auto& [index, expected_value] : expected.items()) {
    EXPECT_EQ(values[std::stoul(index)], expected_value.template get<int64_t>()) << index;
  }
}

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_TESTS_GOLDEN_GOLDEN_STREAMS_H_

// Random bytes in place of the polynomials and expanded seeds of encrypted searches.
#ifndef PRIVATEMAIL_TESTS_TESTING_RANDOM_POLYNOMIALS_H_
#define PRIVATEMAIL_TESTS_TESTING_RANDOM_POLYNOMIALS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "common/lattice/evaluator.h"

namespace privatemail::testing {

// Expands a seed without a digest.
inline bool FillAtRandom(std::string_view input, uint8_t* output, size_t size) {
  std::seed_seq seed(input.begin(), input.end());
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < size; ++i) output[i] = static_cast<uint8_t>(random());
  return true;
}

// Uniform coefficients below the modulus.
inline std::string RandomPolynomials(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> values(lattice::kDegree);
    for (int64_t& value : values) value = static_cast<int64_t>(random() >> 25);
    lattice::AppendPolynomial(values.data(), &bytes);
  }
  return bytes;
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_RANDOM_POLYNOMIALS_H_

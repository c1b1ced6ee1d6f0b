// Byte forms of polynomials, seeds and answers of the scheme `encrypted`.
//
// Used by both sides. All forms are little-endian streams of bits: value i takes the bits after
// those of value i - 1, its lowest bit first.
//   polynomial   kDegree values of 41 bits, each in [0, q)
//   keys         a seed, then for each level from 12 - log2(delta) to 11 and each of its 2 digits,
//                the polynomial b of that key
//   query        a seed, and for each chunk the polynomial b
//   answer       kDegree values a of 20 bits, then kDegree values b of 16 bits
// The polynomials b are coefficients. The polynomials a are uniform; a seed expands to their
// transforms.
#ifndef PRIVATEMAIL_COMMON_LATTICE_WIRE_H_
#define PRIVATEMAIL_COMMON_LATTICE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/lattice/scores.h"

namespace privatemail::lattice {

// SHAKE128: fills `output` with the first bytes of the digest of `input`. Prefixes agree: a longer
// output begins with the shorter one. False: the library that computes it failed.
using Shake128 = std::function<bool(std::string_view input, uint8_t* output, size_t size)>;

// Separates the polynomials that one seed expands to.
enum class SeedUse : uint8_t { kKeys = 1, kQuery = 2 };

// The transform of the uniform polynomial number `index` of a seed: a chunk, or level x kDigits +
// digit with levels from 0. Values come from SHAKE128("privatemail encrypted 1" || use || seed ||
// index as 4 bytes little-endian), 6 bytes each, little-endian, of which the lowest 41 bits count;
// those from q on are skipped. Values are centred. False: `shake` failed.
bool ExpandSeed(std::string_view seed, SeedUse use, uint32_t index, const Shake128& shake,
                int64_t* values);

// Appends kPolynomialBytes. values: centred.
void AppendPolynomial(const int64_t* values, std::string* bytes);
// Reads kPolynomialBytes, centred. False: a value is q or more.
bool ReadPolynomial(const char* bytes, int64_t* values);

// Writes kAnswerBytes. a, b: rounded to kAnswerBitsA and kAnswerBitsB, in [0, 2^bits).
void WriteAnswer(const int64_t* a, const int64_t* b, char* bytes);
void ReadAnswer(const char* bytes, int64_t* a, int64_t* b);

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_WIRE_H_

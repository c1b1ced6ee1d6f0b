// The parameters of encrypted scores: sizes, scales and the rounding of answers.
//
// Used by both sides. A query is split into chunks of `delta` dimensions, a ciphertext each; rows
// into blocks of kDegree, an answer each. Mathematics: client/privacy/PRIVACY.md, section 9.
#ifndef PRIVATEMAIL_COMMON_LATTICE_SCORES_H_
#define PRIVATEMAIL_COMMON_LATTICE_SCORES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/lattice/ring.h"

namespace privatemail::lattice {

// Rows are unit vectors times 2^14, rounded to int16.
inline constexpr int kItemScaleBits = 14;
// The largest score that does not wrap: 1.01. Rounding rows lengthens them by up to 2^-15 sqrt(d),
// and errors come on top (PRIVACY.md section 9).
inline constexpr int64_t kHeadroomNumerator = 101, kHeadroomDenominator = 100;
inline constexpr int64_t kMaxDimensions = 16384;

// The allowed numbers of dimensions in a chunk.
inline constexpr std::array<int, 4> kDeltas = {32, 64, 128, 256};
bool IsDelta(int64_t delta);
// The delta that a server names for this many rows and dimensions: the smallest whose query (seed
// and chunks) is at most 3/5 of the answer's bytes, or else the largest.
int ChooseDelta(int64_t rows, int64_t dimensions);

inline int64_t CountChunks(int64_t dimensions, int delta) {
  return (dimensions + delta - 1) / delta;
}
inline int64_t CountBlocks(int64_t rows) { return (rows + kDegree - 1) / kDegree; }
int CountLevels(int delta);  // log2(delta), key switches from a leaf to the root

// Key switching writes a centred coefficient c as 2 digits of 14 bits and drops the lowest 13 bits:
// kept = floor((c + 2^12) / 2^13), high = floor((kept + 2^13) / 2^14), low = kept - 2^14 high.
// Digit 0 is low, in [-2^13, 2^13), and digit 1 is high, in [-2^13, 2^13].
inline constexpr int kDigits = 2;
inline constexpr int kDigitBits = 14;
inline constexpr int kDroppedBits = kModulusBits - kDigits * kDigitBits;

// An answer holds the coefficients of a ciphertext (a, b), rounded to so many bits each.
inline constexpr int kAnswerBitsA = 20, kAnswerBitsB = 16;

// Byte sizes of what is sent.
inline constexpr size_t kSeedBytes = 32;
inline constexpr size_t kPolynomialBytes = size_t{kDegree} * kModulusBits / 8;  // 10,496
inline constexpr size_t kAnswerBytes =
    size_t{kDegree} * (kAnswerBitsA + kAnswerBitsB) / 8;  // 9,216
inline size_t QueryChunkBytes(int64_t dimensions, int delta) {
  return static_cast<size_t>(CountChunks(dimensions, delta)) * kPolynomialBytes;
}
inline size_t KeysBytes(int delta) {
  return kSeedBytes + static_cast<size_t>(CountLevels(delta) * kDigits) * kPolynomialBytes;
}

// floor(value 2^bits / q + 1/2) modulo 2^bits, for a centred value. No value is a tie: q is odd.
int64_t RoundToBits(int64_t value, int bits);

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_SCORES_H_

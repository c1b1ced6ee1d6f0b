#include "common/lattice/scores.h"

#include <algorithm>
#include <bit>

namespace privatemail::lattice {

bool IsDelta(int64_t delta) {
  return std::find(kDeltas.begin(), kDeltas.end(), delta) != kDeltas.end();
}

int CountLevels(int delta) { return std::countr_zero(static_cast<unsigned>(delta)); }

int ChooseDelta(int64_t rows, int64_t dimensions) {
  const auto answer = static_cast<size_t>(CountBlocks(rows)) * kAnswerBytes;
  for (const int delta : kDeltas) {
    if (5 * (kSeedBytes + QueryChunkBytes(dimensions, delta)) <= 3 * answer) return delta;
  }
  return kDeltas.back();
}

int64_t RoundToBits(int64_t value, int bits) {
  value += kModulus & (value >> 63);  // in [0, q)
  const int64_t rounded = ((value << (bits + 1)) + kModulus) / (2 * kModulus);
  return rounded & ((int64_t{1} << bits) - 1);
}

}  // namespace privatemail::lattice

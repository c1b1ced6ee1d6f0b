// Integers of the scores (PRIVACY.md section 9): unit rows as int16, shares modulo 2^32, and the
// bits of a product that are sent.
#ifndef PRIVATEMAIL_COMMON_IMAGE_SCORE_SHARES_H_
#define PRIVATEMAIL_COMMON_IMAGE_SCORE_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace privatemail {

inline constexpr double kScoreScale = 1 << 14;  // of a unit row, as QuantiseUnitRow
inline constexpr int kDroppedScoreBits = 6;     // the lowest of a product
inline constexpr size_t kScoreBytes = 3;        // of a row, bits 6 to 29
inline constexpr size_t kScoreSeedBytes = 16;
inline constexpr int64_t kMaxScoreDim = 65'536;

// The first `dim` words of AES-128 in counter mode from 0 under `seed` (kScoreSeedBytes).
std::vector<uint32_t> ExpandScoreSeed(absl::string_view seed, int64_t dim);

// The part of a product modulo 2^32 that a server sends.
constexpr uint32_t SentScore(uint32_t product) {
  return (product >> kDroppedScoreBits) & ((uint32_t{1} << (8 * kScoreBytes)) - 1);
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_IMAGE_SCORE_SHARES_H_

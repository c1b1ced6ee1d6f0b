#include "client/schemes/two_server/shares.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/image/score_shares.h"

namespace privatemail::client {

absl::StatusOr<Halves<std::string>> ShareSelection(int64_t lists, int64_t list, BitSource& bits) {
  std::string mask(static_cast<size_t>((lists + 7) / 8), '\0');
  PM_RETURN_IF_ERROR(
      bits.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(mask.data()), mask.size())));
  if (lists % 8 != 0) mask.back() = static_cast<char>(mask.back() & ((1 << (lists % 8)) - 1));
  std::string other = mask;
  char& byte = other[static_cast<size_t>(list / 8)];
  byte = static_cast<char>(byte ^ (1 << (list % 8)));
  return Halves<std::string>{std::move(mask), std::move(other)};
}

std::string XorBytes(const std::string& a, const std::string& b) {
  std::string bytes(a.size(), '\0');
  std::transform(a.begin(), a.end(), b.begin(), bytes.begin(), std::bit_xor<char>());
  return bytes;
}

double CombineScores(uint32_t sent_a, uint32_t sent_b) {
  constexpr int kUnused = 32 - 8 * static_cast<int>(kScoreBytes);
  // Moves the sign to the highest bit and back.
  const auto sum = static_cast<int32_t>((sent_a + sent_b) << kUnused) >> kUnused;
  return std::ldexp(sum, kDroppedScoreBits) / (kScoreScale * kScoreScale);
}

}  // namespace privatemail::client

#include "client/seeded_bits/seeded_bits.h"

#include <algorithm>
#include <cstring>

namespace privatemail::client {
namespace {

uint64_t Stir(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

absl::Status SeededBits::Fill(absl::Span<uint8_t> bytes) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = generator_();
    std::memcpy(bytes.data() + at, &word, std::min<size_t>(8, bytes.size() - at));
  }
  return absl::OkStatus();
}

uint64_t SeedOf(absl::string_view part, uint64_t seed, uint64_t number) {
  uint64_t state = Stir(Stir(seed) + number);
  for (const char letter : part) state = Stir(state + static_cast<unsigned char>(letter));
  return state;
}

}  // namespace privatemail::client

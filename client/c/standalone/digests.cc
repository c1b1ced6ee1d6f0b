// common/base/digests.h without OpenSSL: SHA-256 (FIPS 180-4) and SHAKE128 (FIPS 202) of public
// bytes.
#include "common/base/digests.h"

#include <array>
#include <bit>
#include <cstring>

namespace privatemail {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void AddBlock(const unsigned char* bytes, std::array<uint32_t, 8>* sum) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = 0;
    for (int byte = 0; byte < 4; ++byte) w[i] = w[i] << 8 | bytes[4 * i + byte];
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = *sum;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < sum->size(); ++i) (*sum)[i] += added[i];
}

void KeccakRounds(std::array<uint64_t, 25>* lanes) {
  std::array<uint64_t, 25>& a = *lanes;
  uint8_t shift_register = 1;  // of the round constants
  for (int round = 0; round < 24; ++round) {
    uint64_t columns[5];
    for (int x = 0; x < 5; ++x) columns[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
    for (int i = 0; i < 25; ++i) {
      a[i] ^= columns[(i + 4) % 5] ^ std::rotl(columns[(i + 1) % 5], 1);
    }
    // Rotations along the path of the lanes (x, y) -> (y, 2 x + 3 y).
    uint64_t moved = a[1];
    for (int step = 0, x = 1, y = 0; step < 24; ++step) {
      const int next = (2 * x + 3 * y) % 5;
      x = y;
      y = next;
      const uint64_t rotated = std::rotl(moved, (step + 1) * (step + 2) / 2 % 64);
      moved = a[x + 5 * y];
      a[x + 5 * y] = rotated;
    }
    for (int y = 0; y < 25; y += 5) {
      const uint64_t row[5] = {a[y], a[y + 1], a[y + 2], a[y + 3], a[y + 4]};
      for (int x = 0; x < 5; ++x) a[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    }
    for (int bit = 0; bit < 7; ++bit) {
      if ((shift_register & 1) != 0) a[0] ^= uint64_t{1} << ((1 << bit) - 1);
      shift_register =
          static_cast<uint8_t>(shift_register << 1 ^ (shift_register >> 7 != 0 ? 0x71 : 0));
    }
  }
}

}  // namespace

std::string Sha256::Of(absl::string_view bytes) {
  std::array<uint32_t, 8> sum = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; left -= 64, data += 64) AddBlock(data, &sum);
  unsigned char last[128] = {};
  if (left > 0) std::memcpy(last, data, left);
  last[left] = 0x80;
  const size_t end = left < 56 ? 64 : 128;
  for (size_t byte = 0; byte < 8; ++byte) {
    last[end - 1 - byte] = static_cast<unsigned char>(uint64_t{bytes.size()} * 8 >> (8 * byte));
  }
  for (size_t block = 0; block < end; block += 64) AddBlock(last + block, &sum);
  std::string digest;
  for (const uint32_t word : sum) {
    for (int byte = 3; byte >= 0; --byte) digest.push_back(static_cast<char>(word >> (8 * byte)));
  }
  return digest;
}

uint64_t Sha256::Prefix(absl::string_view digest) {
  uint64_t prefix = 0;
  for (size_t byte = 8; byte-- > 0;) prefix = prefix << 8 | static_cast<uint8_t>(digest[byte]);
  return prefix;
}

bool Shake128(std::string_view input, uint8_t* output, size_t size) {
  constexpr size_t kRate = 168;
  std::array<uint64_t, 25> lanes = {};
  const auto add = [&](size_t at, uint8_t byte) {
    lanes[at / 8] ^= uint64_t{byte} << (8 * (at % 8));
  };
  size_t at = 0;
  for (const char byte : input) {
    add(at++, static_cast<uint8_t>(byte));
    if (at < kRate) continue;
    KeccakRounds(&lanes);
    at = 0;
  }
  add(at, 0x1f);
  add(kRate - 1, 0x80);
  for (size_t i = 0; i < size; ++i) {
    if (i % kRate == 0) KeccakRounds(&lanes);
    output[i] = static_cast<uint8_t>(lanes[i % kRate / 8] >> (8 * (i % 8)));
  }
  return true;
}

}  // namespace privatemail

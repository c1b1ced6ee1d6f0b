#include "server/image/image_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace privatemail::server {
namespace {

constexpr size_t kPairs = 4;  // of lists, by a selection's byte

#ifdef __AVX2__
// Shares that go through a row together.
constexpr size_t kShares = 4;
#endif

// Summed modulo 2^32. GCC makes one multiplication with addition of pairs of it (pmaddwd).
uint32_t Product(int16_t a, int16_t b) { return static_cast<uint32_t>(int32_t{a} * b); }

void MultiplyPlainly(const int16_t* rows, size_t count, const SplitShare& share,
                     uint32_t* products) {
  const size_t dim = share.low.size();
  for (size_t row = 0; row < count; ++row, rows += dim) {
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < dim; ++i) {
      low += Product(rows[i], share.low[i]);
      high += Product(rows[i], share.high[i]);
    }
    products[row] = low + (high << 16);
  }
}

#ifdef __AVX2__
// As MultiplyPlainly for kShares shares. A row is loaded once for all, their halves meet in
// vectors, and so do the sums of the lanes; compilers sum up the lanes of each half.
void MultiplyByFour(const int16_t* rows, size_t count, const SplitShare* const* shares,
                    uint32_t* const* products) {
  constexpr size_t kLanes = 16;
  const size_t dim = shares[0]->low.size(), whole = dim / kLanes * kLanes;
  const auto load = [](const int16_t* values) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  };
  const int16_t *lows[kShares], *highs[kShares];
  for (size_t v = 0; v < kShares; ++v) {
    lows[v] = shares[v]->low.data();
    highs[v] = shares[v]->high.data();
  }
  for (size_t row = 0; row < count; ++row, rows += dim) {
    __m256i low[kShares] = {}, high[kShares] = {};
    for (size_t i = 0; i < whole; i += kLanes) {
      const __m256i values = load(rows + i);
      for (size_t v = 0; v < kShares; ++v) {
        low[v] = _mm256_add_epi32(low[v], _mm256_madd_epi16(values, load(lows[v] + i)));
        high[v] = _mm256_add_epi32(high[v], _mm256_madd_epi16(values, load(highs[v] + i)));
      }
    }
    for (size_t v = 0; v < kShares; ++v) {
      low[v] = _mm256_add_epi32(low[v], _mm256_slli_epi32(high[v], 16));
    }
    const __m256i lanes =
        _mm256_hadd_epi32(_mm256_hadd_epi32(low[0], low[1]), _mm256_hadd_epi32(low[2], low[3]));
    const __m128i sums =
        _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    products[0][row] = static_cast<uint32_t>(_mm_extract_epi32(sums, 0));
    products[1][row] = static_cast<uint32_t>(_mm_extract_epi32(sums, 1));
    products[2][row] = static_cast<uint32_t>(_mm_extract_epi32(sums, 2));
    products[3][row] = static_cast<uint32_t>(_mm_extract_epi32(sums, 3));
    for (size_t i = whole; i < dim; ++i) {
      for (size_t v = 0; v < kShares; ++v) {
        products[v][row] += Product(rows[i], lows[v][i]) + (Product(rows[i], highs[v][i]) << 16);
      }
    }
  }
}
#endif

void Xor(const uint8_t* a, const uint8_t* b, size_t bytes, uint8_t* __restrict sum) {
  for (size_t i = 0; i < bytes; ++i) sum[i] = a[i] ^ b[i];
}

// output ^= the four.
void XorInto(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d, size_t bytes,
             uint8_t* __restrict output) {
  for (size_t i = 0; i < bytes; ++i) output[i] ^= a[i] ^ b[i] ^ c[i] ^ d[i];
}

}  // namespace

SplitShare::SplitShare(absl::Span<const uint32_t> words) {
  low.reserve(words.size());
  high.reserve(words.size());
  for (const uint32_t word : words) {
    low.push_back(static_cast<int16_t>(word));
    // The low half is signed: what it lacks of the word is a multiple of 2^16.
    high.push_back(static_cast<int16_t>((word - static_cast<uint32_t>(low.back())) >> 16));
  }
}

void MultiplyRows(const int16_t* rows, size_t count, absl::Span<const SplitShare* const> shares,
                  absl::Span<uint32_t* const> products) {
  size_t v = 0;
#ifdef __AVX2__
  for (; v + kShares <= shares.size(); v += kShares) {
    MultiplyByFour(rows, count, &shares[v], &products[v]);
  }
#endif
  for (; v < shares.size(); ++v) MultiplyPlainly(rows, count, *shares[v], products[v]);
}

void XorLists(const uint8_t* lists, size_t count, size_t stride, size_t first, size_t bytes,
              absl::Span<const absl::string_view> selections, absl::Span<uint8_t* const> outputs) {
  std::vector<uint8_t> zeros(bytes), pairs(kPairs * bytes);
  for (size_t list = 0; list < count; list += 2 * kPairs) {
    const uint8_t* sums[kPairs][4];  // none of a pair, either, both
    for (size_t pair = 0; pair < kPairs; ++pair) {
      const size_t a = list + 2 * pair;
      const uint8_t* next = lists + a * stride + first;
      sums[pair][0] = zeros.data();
      sums[pair][1] = a < count ? next : zeros.data();
      sums[pair][2] = a + 1 < count ? next + stride : zeros.data();
      sums[pair][3] = &pairs[pair * bytes];
      Xor(sums[pair][1], sums[pair][2], bytes, &pairs[pair * bytes]);
    }
    for (size_t s = 0; s < selections.size(); ++s) {
      const auto bits = static_cast<uint8_t>(selections[s][list / 8]);
      XorInto(sums[0][bits % 4], sums[1][bits / 4 % 4], sums[2][bits / 16 % 4], sums[3][bits / 64],
              bytes, outputs[s]);
    }
  }
}

}  // namespace privatemail::server

#include "server/image/image_kernels.h"

namespace privatemail::server {
namespace {

// Shares that go through a row together: it is loaded once, and their sums stay in registers.
constexpr size_t kSharesOfRow = 4;
// Lists that go into an output together: it is loaded and stored once.
constexpr size_t kListsOfOutput = 8;

// Summed modulo 2^32. GCC makes one multiplication with addition of pairs of it (pmaddwd).
uint32_t Product(int16_t a, int16_t b) { return static_cast<uint32_t>(int32_t{a} * b); }

template <size_t kShares>
void MultiplyBy(const SplitShare* const* shares, const int16_t* rows, size_t count,
                uint32_t* const* products) {
  const size_t dim = shares[0]->low.size();
  const int16_t *low[kShares], *high[kShares];
  for (size_t v = 0; v < kShares; ++v) {
    low[v] = shares[v]->low.data();
    high[v] = shares[v]->high.data();
  }
  for (size_t row = 0; row < count; ++row, rows += dim) {
    uint32_t low_sum[kShares] = {}, high_sum[kShares] = {};
    for (size_t i = 0; i < dim; ++i) {
      for (size_t v = 0; v < kShares; ++v) {
        low_sum[v] += Product(rows[i], low[v][i]);
        high_sum[v] += Product(rows[i], high[v][i]);
      }
    }
    for (size_t v = 0; v < kShares; ++v) products[v][row] = low_sum[v] + (high_sum[v] << 16);
  }
}

template <size_t kLists>
void XorInto(const uint8_t* lists, size_t stride, size_t bytes, const uint8_t* masks,
             uint8_t* __restrict output) {
  for (size_t i = 0; i < bytes; ++i) {
    uint8_t sum = output[i];
    for (size_t list = 0; list < kLists; ++list) sum ^= lists[list * stride + i] & masks[list];
    output[i] = sum;
  }
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
  for (; v + kSharesOfRow <= shares.size(); v += kSharesOfRow) {
    MultiplyBy<kSharesOfRow>(&shares[v], rows, count, &products[v]);
  }
  for (; v < shares.size(); ++v) MultiplyBy<1>(&shares[v], rows, count, &products[v]);
}

std::vector<uint8_t> SelectionMasks(absl::string_view selection, size_t lists) {
  std::vector<uint8_t> masks(lists);
  for (size_t list = 0; list < lists; ++list) {
    const int bit = (static_cast<uint8_t>(selection[list / 8]) >> (list % 8)) & 1;
    masks[list] = static_cast<uint8_t>(-bit);
  }
  return masks;
}

void XorLists(const uint8_t* lists, size_t count, size_t stride, size_t first, size_t bytes,
              absl::Span<const uint8_t* const> masks, absl::Span<uint8_t* const> outputs) {
  const uint8_t* next = lists + first;
  size_t list = 0;
  for (; list + kListsOfOutput <= count; list += kListsOfOutput) {
    for (size_t s = 0; s < masks.size(); ++s) {
      XorInto<kListsOfOutput>(next, stride, bytes, masks[s] + list, outputs[s]);
    }
    next += kListsOfOutput * stride;
  }
  for (; list < count; ++list, next += stride) {
    for (size_t s = 0; s < masks.size(); ++s) {
      XorInto<1>(next, stride, bytes, masks[s] + list, outputs[s]);
    }
  }
}

}  // namespace privatemail::server

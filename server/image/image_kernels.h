// The arithmetic of an image's answers. Time and memory accesses do not depend on the values.
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace privatemail::server {

// A vector of words modulo 2^32 as signed halves of 16 bits: word = low + 2^16 high. Products of
// int16 with each half are what processors add up fastest.
struct SplitShare {
  explicit SplitShare(absl::Span<const uint32_t> words);

  std::vector<int16_t> low, high;
};

// products[v][row] = the product of row `row` of `rows` (count x shares[0].low.size()) with the
// v-th share, modulo 2^32. Shares have one length.
void MultiplyRows(const int16_t* rows, size_t count, absl::Span<const SplitShare* const> shares,
                  absl::Span<uint32_t* const> products);

// For every s: xors into outputs[s] the bytes [first, last) of each list c whose masks[s][c] is ~0;
// the masks of the others are 0. outputs[s] is the place of byte `first`.
void XorLists(const char* lists, size_t count, size_t list_bytes, size_t first, size_t last,
              absl::Span<const uint64_t* const> masks, absl::Span<char* const> outputs);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_

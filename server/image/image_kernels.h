// The arithmetic of an image's answers. How much is done never depends on values, nor do memory
// accesses but one: of two lists and their sums, XorLists reads what a selection's bits say.
#ifndef PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_
#define PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail::server {

// A vector of words modulo 2^32 in signed halves of 16 bits: word = low + 2^16 high. Processors
// multiply and add pairs of int16 in one instruction.
struct SplitShare {
  explicit SplitShare(absl::Span<const uint32_t> words);

  std::vector<int16_t> low, high;
};

// products[v][row] = the product modulo 2^32 of row `row` of `rows` (count x dim) with share v. All
// shares have dim words.
void MultiplyRows(const int16_t* rows, size_t count, absl::Span<const SplitShare* const> shares,
                  absl::Span<uint32_t* const> products);

// outputs[s][i] ^= the xor of the bytes first + i of the lists whose bits selections[s] has
// (FetchListsRequest; none from `count` on), for i < bytes. lists: one after the other, stride
// bytes each. The sum of two neighbours is computed once for all selections, so that a selection
// reads one of none, either or both ("method of four Russians", Arlazarov et al. 1970, of size 2).
void XorLists(const uint8_t* lists, size_t count, size_t stride, size_t first, size_t bytes,
              absl::Span<const absl::string_view> selections, absl::Span<uint8_t* const> outputs);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_

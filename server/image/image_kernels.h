// The arithmetic of an image's answers. Instructions and memory accesses do not depend on values.
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

// One byte for each of `lists` lists: all bits, if the selection has the list's bit
// (FetchListsRequest), or none.
std::vector<uint8_t> SelectionMasks(absl::string_view selection, size_t lists);

// outputs[s][i] ^= the xor of the bytes first + i of all lists, each under its mask of selection s,
// for i < bytes. lists: one after the other, stride bytes each. masks[s]: one a list.
void XorLists(const uint8_t* lists, size_t count, size_t stride, size_t first, size_t bytes,
              absl::Span<const uint8_t* const> masks, absl::Span<uint8_t* const> outputs);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_IMAGE_IMAGE_KERNELS_H_

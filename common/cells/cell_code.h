// The encoding of items that cells return.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

#include <cstdint>

namespace privatemail {

// Little-endian codes of a feature vector scaled to length 1. Numbers are those of v1.CellCode and
// enter a collection's digest.
enum class CellCode {
  kFloat16 = 1,  // 2 d bytes (item_code.h)
  kScalar8 = 2,  // 4 + d bytes (item_code.h)
  // Product quantisation in a fixed number of bytes, with a codebook (product_codebook.h).
  kPq8 = 3,
  kPq16 = 4,
  kPq32 = 5,
  kPq64 = 6,
};

// Whether the code needs a codebook.
constexpr bool IsProductCode(CellCode code) {
  return code >= CellCode::kPq8 && code <= CellCode::kPq64;
}

// Bytes of an encoded row of `dim` values.
constexpr int64_t CodeBytes(CellCode code, int64_t dim) {
  if (code == CellCode::kFloat16) return 2 * dim;
  if (code == CellCode::kScalar8) return dim + static_cast<int64_t>(sizeof(float));
  return int64_t{8} << (static_cast<int>(code) - static_cast<int>(CellCode::kPq8));
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

// The code in which item vectors leave the server for cell queries.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

#include <cstdint>

namespace privatemail {

// Little-endian codes of a feature vector scaled to length 1. Numbers are those of v1.CellCode and
// enter a collection's digest.
enum class CellCode {
  kFloat16 = 1,  // 2 d bytes (scalar_code.h)
  kScalar8 = 2,  // 4 + d bytes (scalar_code.h)
  // Product quantisation in a fixed number of bytes, with a codebook (product_codebook.h).
  kPq8 = 3,
  kPq16 = 4,
  kPq32 = 5,
  kPq64 = 6,
  // No code of the feature vector: the item's embedding_dim coordinates in the server's embedding,
  // each as a float.
  kNone = 7,
};

// Whether it needs a codebook.
bool IsProductCode(CellCode code);

// Bytes that a row of `dim` values takes.
int64_t CodeBytes(CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

// What leaves of items for cells: which code of their feature vectors, or none.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Little-endian; all but the last of a feature vector scaled to length 1.
enum class CellCode {
  kFloat16,  // 2 d bytes (scalar_code.h)
  kScalar8,  // 4 + d bytes (scalar_code.h)
  // So many bytes whatever d is: product quantisation, with a codebook (product_codebook.h).
  kPq8,
  kPq16,
  kPq32,
  kPq64,
  // No code of the feature vector: the item's coordinates in the server's embedding, each as a
  // float.
  kNone,
};

// INVALID_ARGUMENT: "cell_code must be 1 (float16), 2 (scalar8), 3 to 6 (pq8 to pq64) or 7 (none),
// but is 0".
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
v1::CellCode ToProto(CellCode code);

// Whether it needs a codebook.
bool IsProductCode(CellCode code);

// Bytes that a row of `dim` values takes.
int64_t CodeBytes(CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

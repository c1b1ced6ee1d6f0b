// The encoding of items that cells return.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Little-endian. All but kNone encode the feature vector scaled to length 1.
enum class CellCode {
  kFloat16,  // 2 d bytes (item_code.h)
  kScalar8,  // 4 + d bytes (item_code.h)
  // Product quantisation with a codebook (product_codebook.h); the number is the bytes of a row.
  kPq8,
  kPq16,
  kPq32,
  kPq64,
  // The item's coordinates in the server's embedding as floats, instead of its feature vector.
  kNone,
};

// INVALID_ARGUMENT: "cell_code must be 1 (float16), 2 (scalar8), 3 to 6 (pq8 to pq64) or 7 (none),
// but is 0".
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
v1::CellCode ToProto(CellCode code);

// Whether the code needs a codebook.
bool IsProductCode(CellCode code);

// Bytes of an encoded row of `dim` values.
int64_t CodeBytes(CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_CODE_H_

// Which code the feature vectors of items have when they leave for cells.
#ifndef PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Of a row of length 1; little-endian.
enum class CellCode {
  kFloat16,  // 2 d bytes (scalar_code.h)
  kScalar8,  // 4 + d bytes (scalar_code.h)
  // So many bytes whatever d is: product quantisation, with a codebook (product_codebook.h).
  kPq8,
  kPq16,
  kPq32,
  kPq64,
};

// INVALID_ARGUMENT: "cell_code must be 1 (float16), 2 (scalar8) or 3 to 6 (pq8 to pq64), but is 0".
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
v1::CellCode ToProto(CellCode code);

// Whether it needs a codebook.
bool IsProductCode(CellCode code);

// Bytes that a row of `dim` coordinates takes.
int64_t CodeBytes(CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_

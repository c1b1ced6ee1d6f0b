// Feature vectors as they come back for cells: shorter, and nearly what they were.
#ifndef PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_
#define PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Of a row of length 1; little-endian.
enum class CellCode {
  // Every coordinate in IEEE half precision: 2 d bytes. Off by at most 2^-11 of itself (2^-25 where
  // that is more).
  kFloat16,
  // The largest coordinate m in magnitude as a float, then every one as a signed byte b for
  // m b / 127: 4 + d bytes. Off by at most m / 254 and a rounding.
  kScalar8,
};

// INVALID_ARGUMENT: "cell_code must be 1 (float16) or 2 (scalar8), but is 0".
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
v1::CellCode ToProto(CellCode code);

// Bytes that a row of `dim` coordinates takes.
int64_t CodeBytes(CellCode code, int64_t dim);

// row: dim finite values of magnitude at most 1; the bytes are appended.
void AppendCode(CellCode code, const Eigen::RowVectorXf& row, std::string* bytes);

// The rows that `bytes` encode (rows x dim). DATA_LOSS: they are no whole number of rows, or a
// value is not finite.
absl::StatusOr<FloatMatrix> DecodeCodes(CellCode code, int64_t dim, absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_PROTOCOL_CELL_CODE_H_

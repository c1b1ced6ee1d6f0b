// Vectors coordinate by coordinate, in fewer bits or as they are.
#ifndef PRIVATEMAIL_COMMON_CELLS_SCALAR_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_SCALAR_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"

namespace privatemail {

// Little-endian; the first two of rows of length 1.
//
// kFloat16: every coordinate in IEEE half precision. Off by at most 2^-11 of itself (2^-25 where
// that is more).
//
// kScalar8: the largest coordinate m in magnitude as a float, then every one as a signed byte b for
// m b / 127. Off by at most m / 254 and a rounding.
//
// kNone: every value as a float, which is exact.

// row: finite values, of magnitude at most 1 but for kNone; the bytes are appended.
void AppendScalarCode(CellCode code, const Eigen::RowVectorXf& row, std::string* bytes);

// The rows that `bytes` encode, a whole number of them (rows x dim). Some values may not be finite.
FloatMatrix DecodeScalarCodes(CellCode code, int64_t dim, absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_SCALAR_CODE_H_

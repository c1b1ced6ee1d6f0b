#include "common/cells/cell_code.h"

namespace privatemail {

bool IsProductCode(CellCode code) { return code >= CellCode::kPq8 && code <= CellCode::kPq64; }

int64_t CodeBytes(CellCode code, int64_t dim) {
  switch (code) {
    case CellCode::kFloat16:
      return 2 * dim;
    case CellCode::kScalar8:
      return dim + static_cast<int64_t>(sizeof(float));
    case CellCode::kPq8:
      return 8;
    case CellCode::kPq16:
      return 16;
    case CellCode::kPq32:
      return 32;
    case CellCode::kPq64:
      return 64;
    case CellCode::kNone:
      return static_cast<int64_t>(sizeof(float)) * dim;
  }
  __builtin_unreachable();
}

}  // namespace privatemail

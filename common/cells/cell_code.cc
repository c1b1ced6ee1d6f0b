#include "common/cells/cell_code.h"

#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

struct KnownCode {
  CellCode code;
  v1::CellCode proto;
  int64_t bytes_per_value;
  int64_t bytes;  // beside those
};
// In the order of CellCode.
constexpr KnownCode kCodes[] = {
    {CellCode::kFloat16, v1::CELL_CODE_FLOAT16, 2, 0},
    {CellCode::kScalar8, v1::CELL_CODE_SCALAR8, 1, sizeof(float)},
    {CellCode::kPq8, v1::CELL_CODE_PQ8, 0, 8},
    {CellCode::kPq16, v1::CELL_CODE_PQ16, 0, 16},
    {CellCode::kPq32, v1::CELL_CODE_PQ32, 0, 32},
    {CellCode::kPq64, v1::CELL_CODE_PQ64, 0, 64},
    {CellCode::kNone, v1::CELL_CODE_NONE, sizeof(float), 0},
};

const KnownCode& Known(CellCode code) { return kCodes[static_cast<int>(code)]; }

}  // namespace

absl::StatusOr<CellCode> FromProto(v1::CellCode code) {
  for (const KnownCode& known : kCodes) {
    if (known.proto == code) return known.code;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cell_code must be 1 (float16), 2 (scalar8), 3 to 6 (pq8 to pq64) or 7 (none), but is ",
      static_cast<int>(code)));
}

v1::CellCode ToProto(CellCode code) { return Known(code).proto; }

bool IsProductCode(CellCode code) { return Known(code).bytes_per_value == 0; }

int64_t CodeBytes(CellCode code, int64_t dim) {
  return Known(code).bytes_per_value * dim + Known(code).bytes;
}

}  // namespace privatemail

#include "common/protocol/cell_code.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

constexpr float kLargestByte = 127;

template <typename Value>
void Append(Value value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename Value>
Value Read(const char* from) {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

float Decode(CellCode code, const char* row, int64_t coordinate) {
  if (code == CellCode::kFloat16) {
    return static_cast<float>(
        Eigen::numext::bit_cast<Eigen::half>(Read<uint16_t>(row + 2 * coordinate)));
  }
  const auto byte = Read<int8_t>(row + sizeof(float) + coordinate);
  return Read<float>(row) * static_cast<float>(byte) / kLargestByte;
}

}  // namespace

absl::StatusOr<CellCode> FromProto(v1::CellCode code) {
  switch (code) {
    case v1::CELL_CODE_FLOAT16:
      return CellCode::kFloat16;
    case v1::CELL_CODE_SCALAR8:
      return CellCode::kScalar8;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "cell_code must be 1 (float16) or 2 (scalar8), but is ", static_cast<int>(code)));
  }
}

v1::CellCode ToProto(CellCode code) {
  return code == CellCode::kFloat16 ? v1::CELL_CODE_FLOAT16 : v1::CELL_CODE_SCALAR8;
}

int64_t CodeBytes(CellCode code, int64_t dim) {
  return code == CellCode::kFloat16 ? 2 * dim : static_cast<int64_t>(sizeof(float)) + dim;
}

void AppendCode(CellCode code, const Eigen::RowVectorXf& row, std::string* bytes) {
  if (code == CellCode::kFloat16) {
    for (const float value : row) {
      Append(Eigen::numext::bit_cast<uint16_t>(static_cast<Eigen::half>(value)), bytes);
    }
    return;
  }
  const float largest = row.cwiseAbs().maxCoeff();
  Append(largest, bytes);
  for (const float value : row) {
    const float share = largest > 0 ? value / largest : 0;
    Append(static_cast<int8_t>(std::lround(share * kLargestByte)), bytes);
  }
}

absl::StatusOr<FloatMatrix> DecodeCodes(CellCode code, int64_t dim, absl::string_view bytes) {
  const int64_t row_bytes = CodeBytes(code, dim);
  if (static_cast<int64_t>(bytes.size()) % row_bytes != 0) {
    return absl::DataLossError(absl::StrCat("codes must be whole rows of ", row_bytes,
                                            " bytes, but are ", bytes.size(), " bytes"));
  }
  FloatMatrix rows(static_cast<int64_t>(bytes.size()) / row_bytes, dim);
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    for (Eigen::Index c = 0; c < dim; ++c) {
      rows(row, c) = Decode(code, bytes.data() + row * row_bytes, c);
    }
  }
  if (rows.allFinite()) return rows;
  return absl::DataLossError("codes must decode to finite values, but one is NaN or infinite");
}

}  // namespace privatemail

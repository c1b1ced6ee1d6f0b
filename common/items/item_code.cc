#include "common/items/item_code.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/lattice/scores.h"

namespace privatemail {
namespace {

constexpr float kMaxByte = 127;

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
  return Read<float>(row) * static_cast<float>(byte) / kMaxByte;
}

void AppendScalarCode(CellCode code, const Eigen::RowVectorXf& row, std::string* bytes) {
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
    Append(static_cast<int8_t>(std::lround(share * kMaxByte)), bytes);
  }
}

FloatMatrix DecodeScalarCodes(CellCode code, int64_t dim, absl::string_view bytes) {
  const int64_t row_bytes = CodeBytes(code, dim);
  FloatMatrix rows(static_cast<int64_t>(bytes.size()) / row_bytes, dim);
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    for (Eigen::Index c = 0; c < dim; ++c) {
      rows(row, c) = Decode(code, bytes.data() + row * row_bytes, c);
    }
  }
  return rows;
}

}  // namespace

int64_t ItemCodeBytes(const PublicParameters& parameters) {
  return CodeBytes(*parameters.cell_code, parameters.feature_dim);
}

void AppendItemCode(const PublicParameters& parameters, const Eigen::RowVectorXf& row,
                    std::string* bytes) {
  if (parameters.cell_codebook) {
    parameters.cell_codebook->Append(row, bytes);
  } else {
    AppendScalarCode(*parameters.cell_code, row, bytes);
  }
}

absl::StatusOr<FloatMatrix> DecodeItemCodes(const PublicParameters& parameters,
                                            absl::string_view bytes) {
  const int64_t row_bytes = ItemCodeBytes(parameters);
  if (static_cast<int64_t>(bytes.size()) % row_bytes != 0) {
    return absl::DataLossError(absl::StrCat("codes must be whole rows of ", row_bytes,
                                            " bytes, but are ", bytes.size(), " bytes"));
  }
  FloatMatrix rows = parameters.cell_codebook
                         ? parameters.cell_codebook->Decode(bytes)
                         : DecodeScalarCodes(*parameters.cell_code, parameters.feature_dim, bytes);
  if (rows.allFinite()) return rows;
  return absl::DataLossError("codes must decode to finite values, but one is NaN or infinite");
}

std::vector<int16_t> QuantiseUnitRow(const RowVector& unit_row) {
  constexpr double kScale = 1 << lattice::kItemScaleBits;
  std::vector<int16_t> values(static_cast<size_t>(unit_row.size()));
  for (Eigen::Index i = 0; i < unit_row.size(); ++i) {
    values[static_cast<size_t>(i)] = static_cast<int16_t>(std::lround(kScale * unit_row[i]));
  }
  return values;
}

}  // namespace privatemail

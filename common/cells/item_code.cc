#include "common/cells/item_code.h"

#include "absl/strings/str_cat.h"
#include "common/cells/scalar_code.h"

namespace privatemail {

int64_t ItemColumns(const PublicParameters& parameters) {
  return parameters.SendsCoordinates() ? parameters.settings.embedding_dim : parameters.feature_dim;
}

int64_t ItemCodeBytes(const PublicParameters& parameters) {
  return CodeBytes(*parameters.cell_code, ItemColumns(parameters));
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
                         : DecodeScalarCodes(*parameters.cell_code, ItemColumns(parameters), bytes);
  if (rows.allFinite()) return rows;
  return absl::DataLossError("codes must decode to finite values, but one is NaN or infinite");
}

}  // namespace privatemail

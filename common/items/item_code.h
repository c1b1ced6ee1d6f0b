// Encodings of feature vectors: scalar or product codes, which cells return, and int16.
#ifndef PRIVATEMAIL_COMMON_ITEMS_ITEM_CODE_H_
#define PRIVATEMAIL_COMMON_ITEMS_ITEM_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

// The functions below use the code of the collection and require one. Scalar codes, little-endian:
//
//   code      bytes                                           error of a value x
//   kFloat16  IEEE half precision                             2^-11 |x|, at least 2^-25
//   kScalar8  m = max |x| as a float, then signed bytes b     m / 254 and a rounding
//             with x = m b / 127

// Bytes of an encoded item.
int64_t ItemCodeBytes(const PublicParameters& parameters);

// Appends the code of `row`: feature_dim finite values of magnitude at most 1.
void AppendItemCode(const PublicParameters& parameters, const Eigen::RowVectorXf& row,
                    std::string* bytes);

// Decodes items: rows x feature_dim. DATA_LOSS: not a whole number of rows, or a value is not
// finite.
absl::StatusOr<FloatMatrix> DecodeItemCodes(const PublicParameters& parameters,
                                            absl::string_view bytes);

// unit_row times 2^lattice::kItemScaleBits, rounded to the nearest: products with ciphertexts are
// exact. unit_row: of length 1.
std::vector<int16_t> QuantiseUnitRow(const RowVector& unit_row);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_ITEM_CODE_H_

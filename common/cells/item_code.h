// Items as they come back for cells: their feature vectors, shorter and nearly what they were, or
// with the code `none` their coordinates in the server's embedding.
#ifndef PRIVATEMAIL_COMMON_CELLS_ITEM_CODE_H_
#define PRIVATEMAIL_COMMON_CELLS_ITEM_CODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail {

// In the code of a collection, which has one.

// Values of an item's row: feature_dim, or embedding_dim where the code is none.
int64_t ItemColumns(const PublicParameters& parameters);

// Bytes that an item's row takes.
int64_t ItemCodeBytes(const PublicParameters& parameters);

// row: ItemColumns finite values, of a feature vector of magnitude at most 1; the bytes are
// appended.
void AppendItemCode(const PublicParameters& parameters, const Eigen::RowVectorXf& row,
                    std::string* bytes);

// The rows that `bytes` encode (rows x ItemColumns). DATA_LOSS: they are no whole number of rows,
// or a value is not finite.
absl::StatusOr<FloatMatrix> DecodeItemCodes(const PublicParameters& parameters,
                                            absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_ITEM_CODE_H_

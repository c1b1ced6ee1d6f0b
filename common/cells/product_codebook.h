// Product quantisation: a vector is cut into parts, and each part is encoded as the index of its
// nearest centroid (H. Jegou, M. Douze and C. Schmid, Product quantization for nearest neighbor
// search, IEEE TPAMI 33(1), 2011).
#ifndef PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_
#define PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"

namespace privatemail {

// Public: trained once by the server, on anchors alone. Part p of d coordinates has those in
// [floor(p d / parts), floor((p + 1) d / parts)).
//
// A code holds one centroid index a part, in 4 or 8 bits; of two 4-bit indices in a byte the first
// is the lower half. These are the bytes of FAISS's ProductQuantizer if `parts` divides d.
struct ProductCodebook {
  // d x 16 or d x 256, finite: row c holds coordinate c of the centroids of c's part.
  FloatMatrix centroids;
  int64_t parts = 0;  // 1 to d; even where there are 16 centroids
  // Mean of |a - decoded(a)|^2 over the unit rows a of the training anchors. Other vectors lose
  // somewhat more, the more so the fewer anchors there are.
  double relative_squared_error = 0;

  int64_t dim() const { return centroids.rows(); }
  int64_t centroids_per_part() const { return centroids.cols(); }
  int64_t code_bytes() const;
  // First coordinate of a part; dim() for part == parts.
  int64_t Begin(int64_t part) const { return part * dim() / parts; }

  // Appends the code of a row of d finite values. O(d * centroids) time.
  void Append(const Eigen::RowVectorXf& row, std::string* bytes) const;
  // Decodes a whole number of rows: rows x d, finite.
  FloatMatrix Decode(absl::string_view bytes) const;
};

// The number of parts of a product code with 16 or 256 centroids a part.
int64_t PartsOf(CellCode code, int64_t centroids_per_part);

// INVALID_ARGUMENT naming the field unless the codebook fits a product code of rows of `dim`
// coordinates:
// - centroids: dim x 16 or dim x 256, finite
// - parts: those of the code, at most dim
// - error: finite and not negative
absl::Status Validate(const ProductCodebook& codebook, CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_

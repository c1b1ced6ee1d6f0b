// Product quantisation: a vector is cut into parts, and in place of each stands the number of the
// centroid that is nearest to it (H. Jegou, M. Douze and C. Schmid, Product quantization for
// nearest neighbor search, IEEE TPAMI 33(1), 2011).
#ifndef PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_
#define PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"

namespace privatemail {

// Public: made of anchors alone, by the server, once. Of d coordinates part p has those from
// floor(p d / parts) up to but not floor((p + 1) d / parts).
//
// A code is, part after part, the number of a centroid in 4 or 8 bits, the first of two that share
// a byte in its lower half: the bytes of FAISS's ProductQuantizer, which cuts alike where `parts`
// divides d.
struct ProductCodebook {
  // d x 16 or 256: row c holds coordinate c of each centroid of the part that c lies in. Finite.
  FloatMatrix centroids;
  int64_t parts = 0;  // 1 to d; even where there are 16 centroids
  // What is lost of the anchors it was trained on: the mean of |a - decoded(a)|^2 over their unit
  // rows a. Of other vectors of their kind somewhat more is lost, the more the fewer anchors there
  // are.
  double relative_squared_error = 0;

  int64_t dim() const { return centroids.rows(); }
  int64_t centroids_per_part() const { return centroids.cols(); }
  int64_t code_bytes() const;
  // The part's first coordinate; of `parts` itself dim().
  int64_t Begin(int64_t part) const { return part * dim() / parts; }

  // row: d finite values; the bytes are appended. O(d centroids) time.
  void Append(const Eigen::RowVectorXf& row, std::string* bytes) const;
  // The rows that `bytes` encode, a whole number of them (rows x d), finite.
  FloatMatrix Decode(absl::string_view bytes) const;
};

// In how many parts rows are cut that a product code encodes, with 16 or 256 centroids a part.
int64_t PartsOf(CellCode code, int64_t centroids_per_part);

// OK for a codebook of a product code of rows of `dim` coordinates. INVALID_ARGUMENT naming the
// field: centroids that are not dim x 16 or 256, one that is not finite, other than the code's
// parts, more of them than coordinates, an error that is none.
absl::Status Validate(const ProductCodebook& codebook, CellCode code, int64_t dim);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_PRODUCT_CODEBOOK_H_

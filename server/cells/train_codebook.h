// A codebook of product quantisation out of public anchors.
#ifndef PRIVATEMAIL_SERVER_CELLS_TRAIN_CODEBOOK_H_
#define PRIVATEMAIL_SERVER_CELLS_TRAIN_CODEBOOK_H_

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/cells/product_codebook.h"

namespace privatemail::server {

// For a product code: a k-means of each part of the anchors (rows of length 1, n x d), into 256
// centroids where there are 39 anchors for each, which is FAISS's rule, and otherwise into 16 of
// twice as many parts. Equal anchors give equal codebooks on one machine; other machines round in
// their own ways, so it is made once and published. O(n d centroids) time.
//
// INVALID_ARGUMENT: fewer anchors than 39 for each of 16 centroids, or fewer dimensions than parts.
absl::StatusOr<ProductCodebook> TrainCodebook(const FloatMatrix& unit_anchors, CellCode code);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_TRAIN_CODEBOOK_H_

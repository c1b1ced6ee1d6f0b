// Products with an affinity matrix that is computed tile by tile and thrown away again.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_

#include <memory>
#include <vector>

#include "common/base/parallel.h"
#include "common/embedding/affinity_operator.h"
#include "common/numerics/point_source.h"

namespace privatemail {

// Exact, up to rounding in double: beyond four columns squared distances are |x|^2 + |y|^2 - 2 x.y,
// so that an affinity's exponent is off by up to 2^-50 (d + 4) |x|^2 / c. One product with k columns takes O(n^2 (d +
// k)) time, half of it saved by symmetry, and n k doubles a core beside the points.
class TiledAffinity : public AffinityOperator {
 public:
  // points: n x d, rows are points; kernel_denominator: c > 0; products: how many it will be asked
  // for. With more than one and n <= max_cached_rows the upper half of W is kept (at most 70 MB
  // unless told otherwise) and only the first product pays for the kernel.
  static constexpr Eigen::Index kMaxCachedRows = 4096;
  explicit TiledAffinity(Matrix points, double kernel_denominator, int products = 1,
                         Eigen::Index max_cached_rows = kMaxCachedRows);
  // Reads the points again for every 128 rows.
  TiledAffinity(std::shared_ptr<const PointSource> points, double kernel_denominator);

  Eigen::Index size() const override { return points_->rows(); }

 private:
  using Columns = Eigen::MatrixXd;
  // Rows of points and their squared lengths.
  struct Block {
    Matrix rows;
    Vector squared_norms;
  };

  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  // A panel is 128 rows of W from its diagonal on, cut into tiles; the first is the square one.
  Eigen::Index Panels() const;
  Eigen::Index Tiles(Eigen::Index panel) const;
  // Where a tile's columns begin, and how many they are.
  std::pair<Eigen::Index, Eigen::Index> TileColumns(Eigen::Index panel, Eigen::Index tile) const;
  absl::Status ReadBlock(Eigen::Index first, Eigen::Index rows, Block* block) const;
  void FillTile(const Block& rows, const Block& columns, bool diagonal, Matrix* tile) const;
  // Adds a panel of W times v, and its mirror image, to the sums.
  absl::Status AddPanel(Eigen::Index panel, const Columns& v, const SharedWork& work,
                        Columns* sums) const;

  std::shared_ptr<const PointSource> points_;
  double kernel_denominator_;
  std::vector<std::vector<Matrix>> kept_;  // [panel][tile]; empty when W is not kept
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_

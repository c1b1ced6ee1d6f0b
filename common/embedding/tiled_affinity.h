// An exact affinity operator that computes its matrix tile by tile.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_

#include <memory>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/embedding/affinity.h"
#include "common/numerics/point_source.h"

namespace privatemail {

// Exact up to rounding in double. For d > 4, squared distances are |x|^2 + |y|^2 - 2 x.y, so the
// exponent is off by up to 2^-50 (d + 4) |x|^2 / c.
//
//   n points, d coordinates, k columns
//   time    O(n^2 (d + k)) a product, halved by symmetry
//   memory  n k doubles a core beside the points; the cached matrix takes at most 70 MB
class TiledAffinity : public AffinityOperator {
 public:
  // points: n x d; kernel_denominator: c > 0; products: the expected number of products. If it is 2
  // or more and n <= max_cached_rows, the upper half of W is computed once and cached.
  static constexpr Eigen::Index kMaxCachedRows = 4096;
  explicit TiledAffinity(Matrix points, double kernel_denominator, int products = 1,
                         Eigen::Index max_cached_rows = kMaxCachedRows);
  // Reads the points again for every 128 rows; caches nothing.
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

  // A panel is 128 rows of W from the diagonal on, cut into tiles; the first tile is square.
  Eigen::Index Panels() const;
  Eigen::Index Tiles(Eigen::Index panel) const;
  // First column and number of columns of a tile.
  std::pair<Eigen::Index, Eigen::Index> TileColumns(Eigen::Index panel, Eigen::Index tile) const;
  absl::Status ReadBlock(Eigen::Index first, Eigen::Index rows, Block* block) const;
  void FillTile(const Block& rows, const Block& columns, bool diagonal, Matrix* tile) const;
  // Adds (panel of W) * v and the mirror image's product to the sums.
  absl::Status AddPanel(Eigen::Index panel, const Columns& v, const TaskGroup& work,
                        Columns* sums) const;

  std::shared_ptr<const PointSource> points_;
  double kernel_denominator_;
  std::vector<std::vector<Matrix>> cache_;  // [panel][tile]; empty: W is not cached
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_TILED_AFFINITY_H_

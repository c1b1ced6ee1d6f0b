#include "common/embedding/tiled_affinity.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/base/status_macros.h"
#include "common/embedding/affinity.h"

namespace privatemail {
namespace {

constexpr Eigen::Index kPanel = 128;
// A tile of 128 x 512 doubles and its points fit the second-level cache.
constexpr Eigen::Index kTileColumns = 512;

// Number of partial sums, which are added in order. It does not depend on the number of cores, and
// so neither do the bits of the result.
constexpr Eigen::Index kGroups = 16;

// Adds tile * v for the tile's rows and, off the diagonal, tile^T * v for the mirrored rows.
// Columns of v and sums are contiguous, so a row of the tile stays in the first-level cache.
void AddTile(const Matrix& tile, Eigen::Index i, Eigen::Index j, const Eigen::MatrixXd& v,
             Eigen::MatrixXd* sums) {
  for (Eigen::Index row = 0; row < tile.rows(); ++row) {
    for (Eigen::Index c = 0; c < v.cols(); ++c) {
      (*sums)(i + row, c) += tile.row(row).dot(v.col(c).segment(j, tile.cols()));
      if (i == j) continue;
      sums->col(c).segment(j, tile.cols()) += v(i + row, c) * tile.row(row).transpose();
    }
  }
}

}  // namespace

TiledAffinity::TiledAffinity(std::shared_ptr<const PointSource> points, double kernel_denominator)
    : points_(std::move(points)), kernel_denominator_(kernel_denominator) {}

TiledAffinity::TiledAffinity(Matrix points, double kernel_denominator, int products,
                             Eigen::Index max_cached_rows)
    : TiledAffinity(std::make_shared<MatrixPoints>(std::move(points)), kernel_denominator) {
  if (products < 2 || size() > max_cached_rows) return;
  cache_.resize(static_cast<size_t>(Panels()));
  ParallelFor(static_cast<int>(Panels()), [this](int panel) {
    Block rows;
    Block columns;
    cache_[panel].resize(static_cast<size_t>(Tiles(panel)));
    for (Eigen::Index tile = 0; tile < Tiles(panel); ++tile) {
      const auto [first, count] = TileColumns(panel, tile);
      // Reading a matrix in memory cannot fail.
      ReadBlock(first, count, &columns).IgnoreError();
      if (tile == 0) rows = columns;
      FillTile(rows, columns, tile == 0, &cache_[panel][tile]);
    }
  });
}

Eigen::Index TiledAffinity::Panels() const { return (size() + kPanel - 1) / kPanel; }

Eigen::Index TiledAffinity::Tiles(Eigen::Index panel) const {
  const Eigen::Index behind_square = std::max<Eigen::Index>(0, size() - (panel + 1) * kPanel);
  return 1 + (behind_square + kTileColumns - 1) / kTileColumns;
}

std::pair<Eigen::Index, Eigen::Index> TiledAffinity::TileColumns(Eigen::Index panel,
                                                                 Eigen::Index tile) const {
  if (tile == 0) return {panel * kPanel, std::min(kPanel, size() - panel * kPanel)};
  const Eigen::Index first = (panel + 1) * kPanel + (tile - 1) * kTileColumns;
  return {first, std::min(kTileColumns, size() - first)};
}

absl::Status TiledAffinity::ReadBlock(Eigen::Index first, Eigen::Index rows, Block* block) const {
  block->rows.resize(rows, points_->cols());
  PM_RETURN_IF_ERROR(points_->Read(first, &block->rows));
  block->squared_norms = block->rows.rowwise().squaredNorm();
  return absl::OkStatus();
}

void TiledAffinity::FillTile(const Block& rows, const Block& columns, bool diagonal,
                             Matrix* tile) const {
  AffinityBetween(rows.rows, rows.squared_norms, columns.rows, columns.squared_norms,
                  kernel_denominator_, tile);
  if (diagonal) tile->diagonal().setZero();
}

absl::Status TiledAffinity::AddPanel(Eigen::Index panel, const Columns& v, const TaskGroup& work,
                                     Columns* sums) const {
  Block rows;
  Block columns;
  Matrix computed;
  for (Eigen::Index tile = 0; tile < Tiles(panel) && !work.stopped(); ++tile) {
    const auto [first, count] = TileColumns(panel, tile);
    if (cache_.empty()) {
      PM_RETURN_IF_ERROR(ReadBlock(first, count, &columns));
      if (tile == 0) rows = columns;
      FillTile(rows, columns, tile == 0, &computed);
    }
    AddTile(cache_.empty() ? computed : cache_[panel][tile], panel * kPanel, first, v, sums);
  }
  return absl::OkStatus();
}

absl::Status TiledAffinity::Sums(const Matrix& v, Matrix* product, Vector* degrees,
                                 const ProductObserver& observer) const {
  // The degrees are the product with one more column, of ones.
  Columns extended(size(), v.cols() + (degrees == nullptr ? 0 : 1));
  extended.leftCols(v.cols()) = v;
  if (degrees != nullptr) extended.rightCols(1).setOnes();

  Columns sums = Columns::Zero(size(), extended.cols());
  const Eigen::Index groups = std::min(kGroups, Panels());
  std::atomic<Eigen::Index> panels_done = 0;
  const auto add_group = [&](int group, TaskGroup& work) -> absl::Status {
    Columns partial = Columns::Zero(size(), extended.cols());
    for (Eigen::Index panel = group; panel < Panels(); panel += groups) {
      PM_RETURN_IF_ERROR(AddPanel(panel, extended, work, &partial));
      ++panels_done;
    }
    work.RunInOrder(group, [&] { sums += partial; });
    return absl::OkStatus();
  };
  const WorkObserver watch = [&] {
    // Panels become shorter towards the end.
    const double left = 1 - static_cast<double>(panels_done) / static_cast<double>(Panels());
    return observer(1 - left * left);
  };
  PM_RETURN_IF_ERROR(
      ParallelFor(static_cast<int>(groups), add_group, observer ? watch : WorkObserver()));
  *product = sums.leftCols(v.cols());
  if (degrees != nullptr) *degrees = sums.rightCols(1);
  return absl::OkStatus();
}

}  // namespace privatemail

#include "common/embedding/factored_affinity.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/numerics/moments.h"
#include "common/numerics/row_groups.h"

namespace privatemail {
namespace {

// Doubles of second moments a core; products with more columns are split into parts.
constexpr Eigen::Index kMaxMoments = Eigen::Index{1} << 22;

// One product, computed in parts of some columns.
class FactoredProduct {
 public:
  // degrees: null, or receives the product with a column of ones.
  FactoredProduct(const PointSource& points, double kernel_denominator,
                  const ExpPolynomial& polynomial, const Matrix& v, Matrix* product,
                  Vector* degrees)
      : points_(points),
        groups_(points.rows()),
        kernel_denominator_(kernel_denominator),
        polynomial_(polynomial),
        v_(v),
        product_(*product),
        degrees_(degrees),
        columns_(v.cols() + (degrees == nullptr ? 0 : 1)) {}

  absl::Status Run(const ProductObserver& observer) {
    const Eigen::Index of_column =
        polynomial_.degree < 2 ? points_.cols() : points_.cols() * points_.cols();
    part_columns_ = std::clamp<Eigen::Index>(kMaxMoments / of_column, 1, columns_);
    const WorkObserver watch = [&] { return observer(Share()); };
    const WorkObserver watched = observer ? watch : WorkObserver();
    for (first_ = 0; first_ < columns_; first_ += part_columns_) {
      const Eigen::Index count = std::min(part_columns_, columns_ - first_);
      Moments moments(points_.cols(), count, polynomial_.degree);
      PM_RETURN_IF_ERROR(Accumulate(watched, &moments));
      PM_RETURN_IF_ERROR(Apply(watched, moments, count));
    }
    return absl::OkStatus();
  }

 private:
  struct Block {
    Eigen::Index first = 0;
    Matrix points;
    Vector squared_norms;
    Vector kernel;  // g
  };

  double Share() const {
    const Eigen::Index parts = (columns_ + part_columns_ - 1) / part_columns_;
    return static_cast<double>(blocks_done_) / static_cast<double>(2 * parts * groups_.blocks());
  }

  // Calls task(block) for each block of a group until the work is stopped.
  template <typename Task>
  absl::Status ForBlocks(int group, const TaskGroup& work, Task task) {
    Block block;
    const Eigen::Index end = groups_.FirstBlock(group + 1);
    for (Eigen::Index b = groups_.FirstBlock(group); b < end; ++b) {
      if (work.stopped()) return absl::OkStatus();
      block.first = b * kRowBlock;
      block.points.resize(std::min(kRowBlock, points_.rows() - block.first), points_.cols());
      PM_RETURN_IF_ERROR(points_.Read(block.first, &block.points));
      block.squared_norms = block.points.rowwise().squaredNorm();
      block.kernel = (-block.squared_norms.array() / kernel_denominator_).exp();
      task(block);
      ++blocks_done_;
    }
    return absl::OkStatus();
  }

  // g_j v_jc for the block's rows and `count` columns from first_ on.
  Matrix Weights(const Block& block, Eigen::Index count) const {
    Matrix weights(block.points.rows(), count);
    for (Eigen::Index c = 0; c < count; ++c) {
      weights.col(c) = block.kernel;
      if (first_ + c == v_.cols()) continue;
      weights.col(c).array() *=
          v_.col(first_ + c).segment(block.first, block.points.rows()).array();
    }
    return weights;
  }

  absl::Status Accumulate(const WorkObserver& watched, Moments* moments) {
    const Moments zero = *moments;
    const auto add_group = [&](int group, TaskGroup& work) -> absl::Status {
      Moments sum = zero;
      PM_RETURN_IF_ERROR(ForBlocks(group, work, [&](const Block& block) {
        sum.Accumulate(block.points, Weights(block, sum.columns()));
      }));
      work.RunInOrder(group, [&] { moments->Add(sum); });
      return absl::OkStatus();
    };
    return ParallelFor(groups_.count(), add_group, watched);
  }

  absl::Status Apply(const WorkObserver& watched, const Moments& moments, Eigen::Index count) {
    const auto apply_to_group = [&](int group, TaskGroup& work) {
      return ForBlocks(group, work, [&](const Block& block) {
        Matrix sums = moments.Evaluate(block.points, polynomial_);
        const Matrix own = Weights(block, count);
        for (Eigen::Index i = 0; i < sums.rows(); ++i) {
          sums.row(i) -= polynomial_(block.squared_norms[i]) * own.row(i);
        }
        sums.array().colwise() *= block.kernel.array();
        Store(block.first, sums);
      });
    };
    return ParallelFor(groups_.count(), apply_to_group, watched);
  }

  void Store(Eigen::Index first_row, const Matrix& sums) {
    const Eigen::Index of_v = std::min(sums.cols(), v_.cols() - first_);
    product_.block(first_row, first_, sums.rows(), of_v) = sums.leftCols(of_v);
    if (of_v < sums.cols()) degrees_->segment(first_row, sums.rows()) = sums.col(of_v);
  }

  const PointSource& points_;
  const RowGroups groups_;
  const double kernel_denominator_;
  const ExpPolynomial& polynomial_;
  const Matrix& v_;
  Matrix& product_;
  Vector* const degrees_;
  const Eigen::Index columns_;
  Eigen::Index part_columns_ = 1;
  Eigen::Index first_ = 0;  // first column of the current part
  std::atomic<Eigen::Index> blocks_done_ = 0;
};

}  // namespace

FactoredAffinity::FactoredAffinity(std::shared_ptr<const PointSource> points,
                                   double kernel_denominator, const ExpPolynomial& polynomial)
    : points_(std::move(points)),
      kernel_denominator_(kernel_denominator),
      polynomial_(polynomial) {}

absl::Status FactoredAffinity::Sums(const Matrix& v, Matrix* product, Vector* degrees,
                                    const ProductObserver& observer) const {
  return FactoredProduct(*points_, kernel_denominator_, polynomial_, v, product, degrees)
      .Run(observer);
}

double FactoredRounding(Eigen::Index n, Eigen::Index d, double a) {
  const RowGroups groups(n);
  const Eigen::Index blocks_of_group = (groups.blocks() + groups.count() - 1) / groups.count();
  const auto roundings =
      static_cast<double>(kRowBlock + blocks_of_group + groups.count() + 4 * d + 60);
  return 2 * roundings * 0x1p-53 * std::exp(2 * a);
}

}  // namespace privatemail

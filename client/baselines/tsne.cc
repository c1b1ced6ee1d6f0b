#include "client/baselines/tsne.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/privacy/mechanisms/additive_mechanism.h"
#include "common/base/thread_pool.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::baselines {
namespace {

constexpr double kSmallestProbability = std::numeric_limits<double>::epsilon();

// 1 / (1 + |y_i - y_j|^2), zero on the diagonal: q before it is scaled.
void FillSimilarities(const Matrix& embedding, Matrix* of_pairs) {
  const Eigen::Index n = embedding.rows();
  const Eigen::MatrixXd columns = embedding;  // a coordinate of all points lies together
  Matrix& similarities = *of_pairs;
  similarities.resize(n, n);
  ParallelFor(static_cast<int>(n), [&](int i) {
    auto row = similarities.row(i).transpose().array();
    row.setOnes();
    for (Eigen::Index c = 0; c < columns.cols(); ++c) {
      row += (columns.col(c).array() - columns(i, c)).square();
    }
    row = row.inverse().eval();
    row(i) = 0;
  });
}

absl::Status Phase(int64_t iterations, double exaggeration, double momentum, double learning_rate,
                   const GradientFn& gradient_at, Matrix* embedding) {
  Matrix move = Matrix::Zero(embedding->rows(), embedding->cols());
  Matrix gains = Matrix::Ones(embedding->rows(), embedding->cols());
  for (int64_t i = 0; i < iterations; ++i) {
    PM_ASSIGN_OR_RETURN(const Matrix gradient, gradient_at(exaggeration, *embedding));
    gains = (move.array() * gradient.array() < 0).select(gains.array() + .2, gains.array() * .8);
    gains = gains.cwiseMax(.01);
    move = momentum * move - learning_rate * gains.cwiseProduct(gradient);
    *embedding += move;
  }
  return absl::OkStatus();
}

}  // namespace

Matrix TsneGradient(const Matrix& affinity, double exaggeration, const Matrix& embedding,
                    Matrix* room) {
  Matrix own;
  Matrix& similarities = room == nullptr ? own : *room;
  FillSimilarities(embedding, &similarities);
  const double sum = similarities.sum();
  Matrix gradient(embedding.rows(), embedding.cols());
  ParallelFor(static_cast<int>(embedding.rows()), [&](int i) {
    const auto q = (similarities.row(i).array() / sum).max(kSmallestProbability);
    const RowVector weights =
        (exaggeration * affinity.row(i).array() - q) * similarities.row(i).array();
    gradient.row(i) = 4 * (weights.sum() * embedding.row(i) - weights * embedding);
  });
  return gradient;
}

double TsneDivergence(const Matrix& affinity, const Matrix& embedding) {
  Matrix similarities;
  FillSimilarities(embedding, &similarities);
  const double sum = similarities.sum();
  double divergence = 0;
  for (Eigen::Index i = 0; i < affinity.rows(); ++i) {
    for (Eigen::Index j = 0; j < affinity.cols(); ++j) {
      if (i == j) continue;
      const double q = std::max(similarities(i, j) / sum, kSmallestProbability);
      divergence += affinity(i, j) * std::log(affinity(i, j) / q);
    }
  }
  return divergence;
}

absl::StatusOr<Matrix> DescendTsne(const Matrix& start, const TsneOptions& options,
                                   const GradientFn& gradient) {
  const double rate =
      options.learning_rate > 0
          ? options.learning_rate
          : std::max(static_cast<double>(start.rows()) / options.exaggeration / 4, 50.0);
  Matrix embedding = start;
  PM_RETURN_IF_ERROR(
      Phase(options.early_iterations, options.exaggeration, .5, rate, gradient, &embedding));
  PM_RETURN_IF_ERROR(Phase(options.late_iterations, 1, .8, rate, gradient, &embedding));
  return embedding;
}

absl::Status CheckTsne(const TsneOptions& options, int64_t rows) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("rows to embed", rows, 3, kMostTsneRows));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("early_iterations", options.early_iterations, 0, 100'000));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("late_iterations", options.late_iterations, 0, 100'000));
  PM_RETURN_IF_ERROR(CheckBetween("exaggeration", options.exaggeration, 1, 1000));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("learning_rate", options.learning_rate));
  return CheckBetween("start_stddev", options.start_stddev, 1e-30, 1e10);
}

absl::StatusOr<std::shared_ptr<const Matrix>> AffinityFor(const TsneOptions& options,
                                                          const Matrix& rows) {
  if (options.affinity != nullptr) return options.affinity->Of(rows, options.perplexity);
  PM_ASSIGN_OR_RETURN(Matrix affinity, TsneAffinity(rows, options.perplexity));
  return std::make_shared<const Matrix>(std::move(affinity));
}

Matrix JointRows(const DataSplit& split) {
  const Matrix& gallery = split.gallery.features;
  const Matrix& targets = split.targets.features;
  Matrix rows(gallery.rows() + targets.rows(), gallery.cols());
  rows << gallery, targets;
  return rows;
}

absl::StatusOr<BaselineResult> Tsne(const DataSplit& split, const TsneOptions& options,
                                    BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.dimension));
  const Matrix rows = JointRows(split);
  PM_RETURN_IF_ERROR(CheckTsne(options, rows.rows()));
  PM_ASSIGN_OR_RETURN(const auto affinity, AffinityFor(options, rows));
  PM_ASSIGN_OR_RETURN(const Matrix start,
                      NormalStart(rows.rows(), options.dimension, options.start_stddev, bits));
  Matrix room;
  PM_ASSIGN_OR_RETURN(const Matrix embedding,
                      DescendTsne(start, options, [&](double exaggeration, const Matrix& at) {
                        return TsneGradient(*affinity, exaggeration, at, &room);
                      }));
  return BaselineResult{embedding.topRows(split.gallery.features.rows()),
                        embedding.bottomRows(split.targets.features.rows()), NoGuarantee(),
                        kTsneProtects};
}

}  // namespace privatemail::client::baselines

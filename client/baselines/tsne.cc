#include "client/baselines/tsne.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/composition.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client::baselines {
namespace {

// exp(-precision (d_j - nearest)) over the others of row `self`, scaled to sum 1, and its entropy.
// Taking off the nearest distance changes no quotient and keeps the sum at 1 or more.
double Conditional(const RowVector& distances, Eigen::Index self, double precision,
                   RowVector* probabilities) {
  double sum = 0;
  double moment = 0;
  for (Eigen::Index j = 0; j < distances.size(); ++j) {
    const double weight = j == self ? 0 : std::exp(-precision * distances(j));
    (*probabilities)(j) = weight;
    sum += weight;
    moment += weight * distances(j);
  }
  *probabilities /= sum;
  return std::log(sum) + precision * moment / sum;
}

// The precision is doubled or halved until the entropy is enclosed, then bisected.
RowVector RowOfPerplexity(RowVector distances, Eigen::Index self, double perplexity) {
  const double wanted = std::log(perplexity);
  distances(self) = std::numeric_limits<double>::infinity();
  distances.array() -= distances.minCoeff();
  distances(self) = 0;
  RowVector probabilities(distances.size());
  double precision = 1;
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200; ++i) {
    const double excess = Conditional(distances, self, precision, &probabilities) - wanted;
    if (std::abs(excess) < 1e-10 / perplexity) break;
    (excess > 0 ? low : high) = precision;
    precision = std::isinf(high) ? 2 * precision : (low + high) / 2;
  }
  return probabilities;
}

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

// A norm of n values in double is within (n + 2) u of the exact one, and so is what is scaled by
// it; 1e-6 covers more values than memory holds.
constexpr double kRoundingOfTheClip = 1e-6;

absl::StatusOr<std::shared_ptr<const Matrix>> AffinityFor(const TsneOptions& options,
                                                          const Matrix& rows) {
  if (options.affinity != nullptr) return options.affinity->Of(rows, options.perplexity);
  PM_ASSIGN_OR_RETURN(Matrix affinity, TsneAffinity(rows, options.perplexity));
  return std::make_shared<const Matrix>(std::move(affinity));
}

}  // namespace

absl::StatusOr<Matrix> TsneAffinity(const Matrix& rows, double perplexity) {
  const Eigen::Index n = rows.rows();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("rows to embed", n, 3, std::numeric_limits<int>::max()));
  if (!rows.allFinite()) {
    return absl::InvalidArgumentError("rows to embed must be finite, but one is not");
  }
  const auto most = static_cast<double>(n - 1);
  if (!(perplexity > 1) || !(perplexity < most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("perplexity must lie strictly between 1 and ", most, ", but is ", perplexity));
  }
  Matrix conditional(n, n);
  ParallelFor(static_cast<int>(n), [&](int i) {
    RowVector distances(n);
    for (Eigen::Index j = 0; j < n; ++j) {
      distances(j) = SquaredDistance(rows.row(i).data(), rows.row(j).data(), rows.cols());
    }
    conditional.row(i) = RowOfPerplexity(distances, i, perplexity);
  });
  Matrix joint = (conditional + conditional.transpose()) / (2.0 * static_cast<double>(n));
  joint = joint.cwiseMax(std::numeric_limits<double>::epsilon());
  joint.diagonal().setZero();
  return joint;
}

absl::StatusOr<std::shared_ptr<const Matrix>> LastTsneAffinity::Of(const Matrix& rows,
                                                                   double perplexity) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const bool same = affinity_ != nullptr && perplexity == perplexity_ &&
                    rows.rows() == rows_.rows() && rows.cols() == rows_.cols() && rows == rows_;
  if (same) return affinity_;
  PM_ASSIGN_OR_RETURN(Matrix affinity, TsneAffinity(rows, perplexity));
  affinity_ = std::make_shared<const Matrix>(std::move(affinity));
  rows_ = rows;
  perplexity_ = perplexity;
  return affinity_;
}

Matrix TsneGradient(const Matrix& affinity, double exaggeration, const Matrix& embedding,
                    Matrix* scratch) {
  Matrix own;
  Matrix& similarities = scratch == nullptr ? own : *scratch;
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
  PM_RETURN_IF_ERROR(CheckIntegerBetween("rows to embed", rows, 3, kMaxTsneRows));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("early_iterations", options.early_iterations, 0, 100'000));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("late_iterations", options.late_iterations, 0, 100'000));
  PM_RETURN_IF_ERROR(CheckBetween("exaggeration", options.exaggeration, 1, 1000));
  PM_RETURN_IF_ERROR(CheckFiniteNonNegative("learning_rate", options.learning_rate));
  return CheckBetween("start_stddev", options.start_stddev, 1e-30, 1e10);
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
  Matrix scratch;
  PM_ASSIGN_OR_RETURN(const Matrix embedding,
                      DescendTsne(start, options, [&](double exaggeration, const Matrix& at) {
                        return TsneGradient(*affinity, exaggeration, at, &scratch);
                      }));
  return BaselineResult{embedding.topRows(split.gallery.features.rows()),
                        embedding.bottomRows(split.targets.features.rows()), NoGuarantee()};
}

absl::StatusOr<NoisyGradients> NoisyGradients::Make(double clip, int64_t iterations, int64_t values,
                                                    const Cost& cost) {
  PM_RETURN_IF_ERROR(CheckBetween("clip", clip, 1e-9, 1e9));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("iterations", iterations, 1, 200'000));
  // The noise of one release, over a sensitivity that is wider by the root of their number: each
  // has mu / sqrt(iterations) of what the cost allows.
  const double widening = std::sqrt(static_cast<double>(iterations));
  PM_ASSIGN_OR_RETURN(
      std::shared_ptr<const Mechanism> mechanism,
      MakeMechanism({.kind = MechanismKind::kGaussian,
                     .epsilon = cost.epsilon,
                     .delta = cost.delta,
                     .sensitivity = widening * 2 * clip * (1 + kRoundingOfTheClip)},
                    {.values = values, .largest_value = clip * (1 + kRoundingOfTheClip)}));
  Guarantee guarantee = mechanism->guarantee();
  guarantee.neighbours = "any two inputs with as many rows";
  guarantee.source = absl::StrCat(
      kGaussianComposition, " over ", iterations,
      " clipped gradients (Saha et al. 2021, DP-dSNE), of: ", mechanism->guarantee().source);
  return NoisyGradients(clip, std::move(mechanism), std::move(guarantee));
}

absl::StatusOr<Matrix> NoisyGradients::Release(const Matrix& gradient, BitSource& bits) const {
  const double norm = gradient.norm();
  if (!std::isfinite(norm)) {
    return mechanism_->ReleaseInDouble(Matrix::Zero(gradient.rows(), gradient.cols()), bits);
  }
  const Matrix clipped = norm > clip_ ? Matrix(gradient * (clip_ / norm)) : gradient;
  return mechanism_->ReleaseInDouble(clipped, bits);
}

absl::StatusOr<BaselineResult> DpDsne(const DataSplit& split, const DpDsneOptions& options,
                                      const Cost& cost, BitSource& bits) {
  PM_RETURN_IF_ERROR(CheckSplit(split, options.tsne.dimension));
  const Matrix rows = JointRows(split);
  PM_RETURN_IF_ERROR(CheckTsne(options.tsne, rows.rows()));
  PM_ASSIGN_OR_RETURN(
      const NoisyGradients noise,
      NoisyGradients::Make(options.clip,
                           options.tsne.early_iterations + options.tsne.late_iterations,
                           rows.rows() * options.tsne.dimension, cost));
  PM_ASSIGN_OR_RETURN(const auto affinity, AffinityFor(options.tsne, rows));
  PM_ASSIGN_OR_RETURN(const Matrix start, NormalStart(rows.rows(), options.tsne.dimension,
                                                      options.tsne.start_stddev, bits));
  Matrix scratch;
  PM_ASSIGN_OR_RETURN(const Matrix embedding,
                      DescendTsne(start, options.tsne, [&](double exaggeration, const Matrix& at) {
                        return noise.Release(TsneGradient(*affinity, exaggeration, at, &scratch),
                                             bits);
                      }));
  return BaselineResult{embedding.topRows(split.gallery.features.rows()),
                        embedding.bottomRows(split.targets.features.rows()), noise.guarantee()};
}

}  // namespace privatemail::client::baselines

#include "client/schemes/class_ranker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client {
namespace {

constexpr double kShrinkages[] = {.05, .2, .5, .7, .85, .95, 1};
constexpr double kSharpnesses[] = {5, 10, 20, 40, 80};
constexpr double kWeights[] = {0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1};
// Values of the tables of left-out anchors by classes and by anchors; bounds time and memory.
constexpr int64_t kMaxScores = 1'000'000;
constexpr int64_t kMaxSimilarities = 10'000'000;
constexpr int64_t kMaxLeftOut = 2'000;

// log sum_c exp(row_c), without overflow.
double LogSumExp(const RowVector& row) {
  const double largest = row.maxCoeff();
  return largest + std::log((row.array() - largest).exp().sum());
}

// Mean log loss of the classes `truth` under softmax(beta * scores), and its first two derivatives.
struct LogLoss {
  double value = 0;
  double slope = 0;
  double curvature = 0;
};
LogLoss LogLossAt(const Matrix& scores, const std::vector<int64_t>& truth, double beta) {
  LogLoss loss;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const RowVector scaled = beta * scores.row(i);
    const double norm = LogSumExp(scaled);
    const RowVector p = (scaled.array() - norm).exp();
    const double mean = p.dot(scores.row(i));
    const double own = scores(i, truth[static_cast<size_t>(i)]);
    loss.value += norm - beta * own;
    loss.slope += mean - own;
    loss.curvature += p.dot((scores.row(i).array() - mean).square().matrix());
  }
  const auto rows = static_cast<double>(scores.rows());
  return {loss.value / rows, loss.slope / rows, loss.curvature / rows};
}

// The beta > 0 of the smallest log loss, which is convex in beta: Newton steps between bounds.
struct Scaled {
  double beta = 1;
  double loss = 0;
};
Scaled FitScale(const Matrix& scores, const std::vector<int64_t>& truth) {
  const double spread = (scores.rowwise().maxCoeff() - scores.rowwise().minCoeff()).mean() + 1e-300;
  double low = 0;
  double high = 1e4 / spread;
  double beta = 5 / spread;
  LogLoss loss;
  for (int i = 0; i < 30; ++i) {
    loss = LogLossAt(scores, truth, beta);
    (loss.slope > 0 ? high : low) = beta;
    double next = beta - loss.slope / std::max(loss.curvature, 1e-300);
    if (!(next > low && next < high)) next = (low + high) / 2;
    if (std::abs(next - beta) < 1e-6 * beta) break;
    beta = next;
  }
  return {beta, loss.value};
}

// The candidate parameter whose scores have the smallest log loss.
struct Fitted {
  double parameter = 0;
  double scale = 1;
  Matrix scores;  // left-out rows x slots, without the scale
};
Fitted FitParameter(absl::Span<const double> candidates, const std::vector<int64_t>& truth,
                    absl::FunctionRef<Matrix(double)> scores_with) {
  Fitted best;
  double least = std::numeric_limits<double>::infinity();
  for (const double parameter : candidates) {
    Matrix scores = scores_with(parameter);
    const Scaled scaled = FitScale(scores, truth);
    if (!(scaled.loss < least)) continue;
    least = scaled.loss;
    best = {parameter, scaled.beta, std::move(scores)};
  }
  return best;
}

Matrix RowsAt(const Matrix& rows, const std::vector<int64_t>& at) {
  Matrix some(std::ssize(at), rows.cols());
  for (Eigen::Index i = 0; i < some.rows(); ++i) some.row(i) = rows.row(at[static_cast<size_t>(i)]);
  return some;
}

Vector CountSlots(const std::vector<int64_t>& slot_of_anchor, int64_t slots) {
  Vector count = Vector::Zero(slots);
  for (const int64_t slot : slot_of_anchor) ++count[slot];
  return count;
}

// Anchors that are left out: all whose class has others, or evenly spaced ones of them.
std::vector<int64_t> RowsToLeaveOut(const std::vector<int64_t>& slot_of_anchor,
                                    const Vector& count) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < slot_of_anchor.size(); ++i) {
    if (count[slot_of_anchor[i]] > 1) rows.push_back(static_cast<int64_t>(i));
  }
  const auto all = std::ssize(rows);
  const int64_t most =
      std::min({all, kMaxLeftOut, std::max<int64_t>(kMaxScores / count.size(), 100),
                std::max<int64_t>(kMaxSimilarities / std::ssize(slot_of_anchor), 100)});
  for (int64_t i = 0; i < most; ++i) rows[static_cast<size_t>(i)] = rows[i * all / most];
  rows.resize(static_cast<size_t>(most));
  return rows;
}

// log mean_j exp(b s_j) over each class's anchors; s: similarities to all anchors. `without`: an
// anchor that is left out, or -1. A class without another anchor gets the smallest score.
RowVector KernelScores(const RowVector& similarity, const std::vector<int64_t>& slot_of_anchor,
                       int64_t slots, double sharpness, int64_t without) {
  RowVector sum = RowVector::Zero(slots);
  RowVector count = RowVector::Zero(slots);
  for (Eigen::Index j = 0; j < similarity.size(); ++j) {
    if (j == without) continue;
    const int64_t slot = slot_of_anchor[static_cast<size_t>(j)];
    sum[slot] += std::exp(sharpness * (similarity[j] - 1));  // at most 1
    ++count[slot];
  }
  return (sum.array().max(1e-300) / count.array().max(1)).log();
}

// The discriminant in the eigenvectors' basis, where S is diagonal.
struct Discriminant {
  Matrix rows;         // P x r: the anchors
  Matrix means;        // slots x r
  Vector eigenvalues;  // r: of the pooled within-class covariance
  Vector count;        // slots
  double freedom = 1;  // P - slots

  // The diagonal of S^-1.
  Vector Precision(double shrinkage) const {
    const double target = std::max(eigenvalues.mean(), 1e-12);
    return ((1 - shrinkage) * eigenvalues.array() + shrinkage * target).inverse();
  }
  // Scores of an anchor of class `slot` by means and covariance without it (Sherman and Morrison);
  // the shrinkage target stays.
  RowVector LeaveOut(int64_t anchor, int64_t slot, double shrinkage,
                     const Vector& precision) const {
    const RowVector residual = rows.row(anchor) - means.row(slot);
    const RowVector weighted = residual.cwiseProduct(precision.transpose());
    const double q = weighted.dot(residual);
    // Its class's mean without it is further away by this factor.
    const double away = count[slot] / (count[slot] - 1);
    const double g = (1 - shrinkage) * away / freedom;
    const double update = g * q < 1 ? g / (1 - g * q) : 0;
    RowVector scores(means.rows());
    for (Eigen::Index c = 0; c < means.rows(); ++c) {
      const RowVector to_mean = rows.row(anchor) - means.row(c);
      const double u = weighted.dot(to_mean);
      scores[c] = -.5 * (to_mean.cwiseAbs2().dot(precision.transpose()) + update * u * u);
    }
    scores[slot] = -.5 * away * away * (q + update * q * q);
    return scores;
  }
};

// An orthonormal basis of the rows' span, d x rank, for fewer rows than columns.
Matrix SpanOfRows(const Matrix& rows) {
  constexpr double kRelativeRank = 1e-10;
  const SymmetricEigendecomposition gram = DecomposeSymmetric(rows * rows.transpose());
  const Vector& values = gram.eigenvalues;  // ascending
  const double least = kRelativeRank * values[values.size() - 1];
  const auto rank = (values.array() > least).count();
  return rows.transpose() * gram.eigenvectors.rightCols(rank) *
         values.tail(rank).cwiseSqrt().cwiseInverse().asDiagonal();
}

// basis: receives the eigenvectors, d x r.
Discriminant MakeDiscriminant(const Matrix& anchors, const std::vector<int64_t>& slot_of_anchor,
                              int64_t slots, Matrix* basis) {
  Discriminant made;
  made.count = CountSlots(slot_of_anchor, slots);
  Matrix means = Matrix::Zero(slots, anchors.cols());
  for (Eigen::Index i = 0; i < anchors.rows(); ++i) {
    means.row(slot_of_anchor[static_cast<size_t>(i)]) += anchors.row(i);
  }
  means = (made.count.cwiseInverse().asDiagonal() * means).eval();
  Matrix within = anchors - RowsAt(means, slot_of_anchor);
  made.freedom = std::max(1.0, static_cast<double>(anchors.rows() - slots));
  // Fewer anchors than dimensions lie in the span of their rows. Outside of it a target is equally
  // far from all classes.
  Matrix span;  // d x r; empty: all
  if (anchors.cols() > anchors.rows()) {
    span = SpanOfRows(anchors);
    within = (within * span).eval();
  }
  const SymmetricEigendecomposition eigen =
      DecomposeSymmetric(within.transpose() * within / made.freedom);
  *basis = span.size() > 0 ? Matrix(span * eigen.eigenvectors) : Matrix(eigen.eigenvectors);
  made.eigenvalues = eigen.eigenvalues.cwiseMax(0);
  made.rows = anchors * *basis;
  made.means = means * *basis;
  return made;
}

}  // namespace

ClassRanker::ClassRanker(const Matrix& anchors, const std::vector<int64_t>& slot_of_anchor,
                         int64_t slots)
    : anchors_(anchors), slot_of_anchor_(slot_of_anchor), slots_(slots) {
  const Discriminant discriminant = MakeDiscriminant(anchors, slot_of_anchor, slots, &basis_);
  means_ = discriminant.means;
  const std::vector<int64_t> left_out = RowsToLeaveOut(slot_of_anchor, discriminant.count);
  if (left_out.empty()) {
    precision_ = discriminant.Precision(shrinkage_);
    return;
  }
  std::vector<int64_t> truth;
  for (const int64_t i : left_out) truth.push_back(slot_of_anchor[static_cast<size_t>(i)]);
  const auto of_each = [&](const auto& score) {
    Matrix scores(std::ssize(left_out), slots);
    for (Eigen::Index i = 0; i < scores.rows(); ++i) {
      scores.row(i) = score(i, left_out[static_cast<size_t>(i)]);
    }
    return scores;
  };
  Fitted by_discriminant = FitParameter(kShrinkages, truth, [&](double shrinkage) {
    const Vector precision = discriminant.Precision(shrinkage);
    return of_each([&](Eigen::Index i, int64_t anchor) {
      return discriminant.LeaveOut(anchor, truth[static_cast<size_t>(i)], shrinkage, precision);
    });
  });
  const Matrix similarity = RowsAt(anchors, left_out) * anchors.transpose();
  Fitted by_kernel = FitParameter(kSharpnesses, truth, [&](double sharpness) {
    return of_each([&](Eigen::Index i, int64_t anchor) {
      return KernelScores(similarity.row(i), slot_of_anchor, slots, sharpness, anchor);
    });
  });
  const Fitted pooled = FitParameter(kWeights, truth, [&](double weight) {
    return Matrix((1 - weight) * by_discriminant.scale * by_discriminant.scores +
                  weight * by_kernel.scale * by_kernel.scores);
  });
  shrinkage_ = by_discriminant.parameter;
  precision_ = discriminant.Precision(shrinkage_);
  kernel_sharpness_ = by_kernel.parameter;
  kernel_weight_ = pooled.parameter;
  discriminant_scale_ = pooled.scale * (1 - kernel_weight_) * by_discriminant.scale;
  kernel_scale_ = pooled.scale * kernel_weight_ * by_kernel.scale;
  for (Eigen::Index i = 0; i < pooled.scores.rows(); ++i) {
    const RowVector scores = pooled.scale * pooled.scores.row(i);
    const int64_t own = truth[static_cast<size_t>(i)];
    LeftOut& one = left_out_.emplace_back();
    for (Eigen::Index c = 0; c < slots; ++c) {
      if (!(scores[c] > scores[own] || (scores[c] == scores[own] && c < own))) continue;
      ++one.rank;
      // As often as its posterior can be halved before it is the smaller one.
      const double halvings = (scores[c] - scores[own]) / std::numbers::ln2;
      one.places_before += 1 + static_cast<int64_t>(std::min(halvings, 1e6));
    }
  }
}

Vector ClassRanker::Posterior(const RowVector& unit_row) const {
  const RowVector placed = unit_row * basis_;
  RowVector scores(slots_);
  for (int64_t c = 0; c < slots_; ++c) {
    const RowVector away = placed - means_.row(c);
    scores[c] =
        -.5 * discriminant_scale_ * (away.array().square() * precision_.transpose().array()).sum();
  }
  if (kernel_scale_ > 0) {
    scores += kernel_scale_ * KernelScores(unit_row * anchors_.transpose(), slot_of_anchor_, slots_,
                                           kernel_sharpness_, -1);
  }
  return (scores.array() - LogSumExp(scores)).exp().matrix().transpose();
}

std::optional<double> ClassRanker::ExpectedRecall(int64_t k, int64_t classes) const {
  if (left_out_.empty()) return std::nullopt;
  const auto found = std::count_if(left_out_.begin(), left_out_.end(), [&](const LeftOut& one) {
    return classes == 0 ? one.places_before < k : one.rank < std::min(classes, k);
  });
  return static_cast<double>(found) / static_cast<double>(left_out_.size());
}

std::vector<ClassPlaces> ClassRanker::Allot(const RowVector& unit_row, int64_t k,
                                            int64_t classes) const {
  const Vector posterior = Posterior(unit_row);
  const int64_t most = std::min({classes == 0 ? k : classes, k, slots_});
  std::vector<int64_t> order(static_cast<size_t>(slots_));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + most, order.end(), [&](int64_t a, int64_t b) {
    return posterior[a] != posterior[b] ? posterior[a] > posterior[b] : a < b;
  });
  std::vector<ClassPlaces> allotted;
  double sum = 0;
  for (int64_t i = 0; i < most; ++i) {
    const int64_t slot = order[static_cast<size_t>(i)];
    allotted.push_back(
        {.slot = slot, .places = classes == 0 ? 0 : 1, .posterior = posterior[slot]});
    sum += posterior[slot];
  }
  // A further place goes to the class of the largest claim.
  const auto claim = [&](const ClassPlaces& one) {
    const auto places = static_cast<double>(one.places);
    return classes == 0 ? one.posterior * std::exp2(-places)
                        : one.posterior / sum * static_cast<double>(k) - places;
  };
  using Claim = std::pair<double, int64_t>;  // equal claims: the more probable class
  std::priority_queue<Claim> claims;
  for (int64_t i = 0; i < most; ++i) claims.emplace(claim(allotted[i]), -i);
  for (int64_t left = classes == 0 ? k : k - most; left > 0; --left) {
    const int64_t i = -claims.top().second;
    claims.pop();
    ++allotted[i].places;
    claims.emplace(claim(allotted[i]), -i);
  }
  std::erase_if(allotted, [](const ClassPlaces& one) { return one.places == 0; });
  return allotted;
}

}  // namespace privatemail::client

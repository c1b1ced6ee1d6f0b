#include "common/embedding/label_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "common/numerics/row_groups.h"

namespace privatemail {
namespace {

// sum_b |label_a - label_b| v_b for each class a, by sums over the ascending labels. v: C x k.
Matrix MultiplyDistance(const Vector& label, const Matrix& v) {
  // Labels around 0 lose the fewest digits.
  const Vector y = label.array() - label[label.size() / 2];
  const RowVector all = v.colwise().sum();
  const RowVector all_moments = y.transpose() * v;
  RowVector sum = RowVector::Zero(v.cols());
  RowVector moments = RowVector::Zero(v.cols());
  Matrix product(v.rows(), v.cols());
  for (Eigen::Index a = 0; a < v.rows(); ++a) {
    sum += v.row(a);
    moments += y[a] * v.row(a);
    product.row(a) = y[a] * (2 * sum - all) - 2 * moments + all_moments;
  }
  return product;
}

// A v for A = -1/2 J |label_a - label_b| J, where J centres over rows: class b has count[b] rows,
// whose sums are v.
Matrix MultiplyCentredDistance(const Vector& label, const Vector& count, const Matrix& v) {
  const double rows = count.sum();
  const Vector mean = MultiplyDistance(label, count) / rows;
  const double grand_mean = mean.dot(count) / rows;
  const RowVector all = v.colwise().sum();
  Matrix product = MultiplyDistance(label, v);
  product.noalias() -= mean * all;
  product.rowwise() -= mean.transpose() * v - grand_mean * all;
  return -0.5 * product;
}

// sum_b exp(-(label_a - label_b)^2 / denominator) v_b; beyond the reach each term underflows to 0.
Matrix MultiplyKernel(const Vector& label, double denominator, const Matrix& v) {
  constexpr double kLargestExponent = 746;
  const double reach = std::sqrt(kLargestExponent * denominator);
  Matrix product = Matrix::Zero(v.rows(), v.cols());
  Eigen::Index first = 0;
  for (Eigen::Index a = 0; a < v.rows(); ++a) {
    while (label[a] - label[first] > reach) ++first;
    for (Eigen::Index b = first; b < v.rows() && label[b] - label[a] <= reach; ++b) {
      const double distance = label[a] - label[b];
      product.row(a) += std::exp(-distance * distance / denominator) * v.row(b);
    }
  }
  return product;
}

// One-hot rows of different classes are sqrt(2) apart.
Matrix MultiplyOneHotKernel(double denominator, const Matrix& v) {
  const double other = std::exp(-2 / denominator);
  return ((1 - other) * v).rowwise() + other * v.colwise().sum();
}

}  // namespace

Matrix ClassCode(Eigen::Index classes, Eigen::Index k) {
  const auto count = static_cast<double>(classes);
  Matrix code = Matrix::Zero(classes, k);
  if (k == 1 && classes > 1) {
    const double unit = std::sqrt(3 / (count * count - 1));
    for (Eigen::Index c = 0; c < classes; ++c) {
      code(c, 0) = unit * (2 * static_cast<double>(c) + 1 - count);
    }
    return code;
  }
  for (Eigen::Index j = 0; j < std::min(k, classes - 1); ++j) {
    const Eigen::Index frequency = j / 2 + 1;
    const bool alternates = 2 * frequency == classes;
    for (Eigen::Index c = 0; c < classes; ++c) {
      // Reduced first, so that large classes lose no digits.
      const auto turn = static_cast<double>(frequency * c % classes) / count;
      const double angle = 2 * std::numbers::pi * turn;
      code(c, j) = alternates   ? (c % 2 == 0 ? 1 : -1)
                   : j % 2 == 0 ? std::numbers::sqrt2 * std::cos(angle)
                                : std::numbers::sqrt2 * std::sin(angle);
    }
  }
  return code;
}

LabelGraph::LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind,
                       double kernel_denominator)
    : kind_(kind), kernel_denominator_(kernel_denominator) {
  std::map<int32_t, int64_t> rows_of_label;
  for (const int32_t label : labels) ++rows_of_label[label];
  label_.resize(static_cast<Eigen::Index>(rows_of_label.size()));
  count_.resize(label_.size());
  std::vector<int32_t> distinct;
  for (const auto& [label, rows] : rows_of_label) {
    const auto at = static_cast<Eigen::Index>(distinct.size());
    label_[at] = label;
    count_[at] = static_cast<double>(rows);
    distinct.push_back(label);
  }
  class_of_row_.reserve(labels.size());
  for (const int32_t label : labels) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), label) - distinct.begin();
    class_of_row_.push_back(static_cast<int32_t>(at));
  }
  // The code and centred distances sum to 0 over all rows.
  const bool centred = kind == LabelGraphKind::kBalanced || kind == LabelGraphKind::kDistance;
  class_degree_ = centred ? Vector(Vector::Zero(classes())) : Vector(MultiplyAffinity(count_));
}

Matrix LabelGraph::ClassSums(const Matrix& v) const {
  const auto add = [&](Eigen::Index first, Eigen::Index count, Vector* sums) {
    Eigen::Map<Matrix> of_class(sums->data(), classes(), v.cols());
    for (Eigen::Index i = first; i < first + count; ++i) of_class.row(class_of_row_[i]) += v.row(i);
  };
  const Vector sums = SumOverRows(RowGroups(size()), classes() * v.cols(), add);
  return Eigen::Map<const Matrix>(sums.data(), classes(), v.cols());
}

Matrix LabelGraph::MultiplyLaplacian(const Matrix& v) const {
  Matrix product = Matrix::Zero(v.rows(), v.cols());
  AddLaplacian(1, v, &product);
  return product;
}

Matrix LabelGraph::MultiplyAffinity(const Matrix& class_sums) const {
  switch (kind_) {
    case LabelGraphKind::kDistance:
      return MultiplyCentredDistance(label_, count_, class_sums);
    case LabelGraphKind::kKernel:
      return MultiplyKernel(label_, kernel_denominator_, class_sums);
    case LabelGraphKind::kOneHotKernel:
      return MultiplyOneHotKernel(kernel_denominator_, class_sums);
    case LabelGraphKind::kBalanced: {
      const Matrix code = ClassCode(classes(), class_sums.cols());
      const Matrix means = count_.cwiseInverse().asDiagonal() * class_sums;
      return -code * (code.transpose() * means) * (count_.sum() / static_cast<double>(classes()));
    }
  }
  __builtin_unreachable();
}

void LabelGraph::AddLaplacian(double weight, const Matrix& v, Matrix* sum) const {
  const Matrix affine_sum = MultiplyAffinity(ClassSums(v));
  for (Eigen::Index i = 0; i < size(); ++i) {
    const int32_t c = class_of_row_[i];
    sum->row(i) += weight * (class_degree_[c] * v.row(i) - affine_sum.row(c));
  }
}

Matrix LabelGraph::CodeOfRows(Eigen::Index k) const {
  const Matrix code = ClassCode(classes(), k);
  Matrix rows(size(), k);
  for (Eigen::Index i = 0; i < size(); ++i) rows.row(i) = code.row(class_of_row_[i]);
  return rows;
}

Matrix LabelGraph::ClassMeansInCode(const Matrix& v) const {
  const Matrix means = count_.cwiseInverse().asDiagonal() * ClassSums(v);
  return ClassCode(classes(), v.cols()).transpose() * means / static_cast<double>(classes());
}

}  // namespace privatemail

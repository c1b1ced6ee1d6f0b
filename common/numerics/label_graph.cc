#include "common/numerics/label_graph.h"

#include <algorithm>
#include <cmath>

namespace privatemail {
namespace {

// A between the classes with labels `label` of `count` rows each.
Matrix ClassAffinity(const Vector& label, const Vector& count, LabelGraphKind kind,
                     double kernel_denominator) {
  const Eigen::Index classes = label.size();
  Matrix distance(classes, classes);
  for (Eigen::Index a = 0; a < classes; ++a) {
    distance.row(a) = (label.array() - label[a]).abs().transpose();
  }
  switch (kind) {
    case LabelGraphKind::kKernel:
      return (-distance.array().square() / kernel_denominator).exp();
    case LabelGraphKind::kOneHotKernel:
      // One-hot rows of different classes are sqrt(2) apart.
      return (distance.array() > 0)
          .select(std::exp(-2 / kernel_denominator), Matrix::Ones(classes, classes));
    case LabelGraphKind::kDistance: {
      const double rows = count.sum();
      const Vector mean = distance * count / rows;
      const double grand_mean = mean.dot(count) / rows;
      Matrix centred = distance;
      centred.colwise() -= mean;
      centred.rowwise() -= mean.transpose();
      return -0.5 * (centred.array() + grand_mean);
    }
  }
  __builtin_unreachable();
}

}  // namespace

LabelGraph::LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind,
                       double kernel_denominator) {
  std::vector<int32_t> distinct(labels.begin(), labels.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

  Vector count = Vector::Zero(static_cast<Eigen::Index>(distinct.size()));
  class_of_row_.reserve(labels.size());
  for (const int32_t label : labels) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), label) - distinct.begin();
    class_of_row_.push_back(static_cast<int32_t>(at));
    count[at] += 1;
  }
  const Vector label_values =
      Eigen::Map<const Eigen::VectorXi>(distinct.data(), static_cast<Eigen::Index>(distinct.size()))
          .cast<double>();
  affinity_ = ClassAffinity(label_values, count, kind, kernel_denominator);
  class_degree_ = affinity_ * count;
}

Matrix LabelGraph::MultiplyLaplacian(const Matrix& v) const {
  Matrix product = Matrix::Zero(v.rows(), v.cols());
  AddLaplacian(1, v, &product);
  return product;
}

void LabelGraph::AddLaplacian(double weight, const Matrix& v, Matrix* sum) const {
  Matrix class_sum = Matrix::Zero(affinity_.rows(), v.cols());
  for (Eigen::Index i = 0; i < size(); ++i) class_sum.row(class_of_row_[i]) += v.row(i);
  const Matrix affine_sum = affinity_ * class_sum;
  for (Eigen::Index i = 0; i < size(); ++i) {
    const int32_t c = class_of_row_[i];
    sum->row(i) += weight * (class_degree_[c] * v.row(i) - affine_sum.row(c));
  }
}

}  // namespace privatemail

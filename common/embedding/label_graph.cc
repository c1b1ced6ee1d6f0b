#include "common/embedding/label_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// A between classes, given each class's label and number of rows.
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

std::map<int32_t, int64_t> CountLabels(absl::Span<const int32_t> labels) {
  std::map<int32_t, int64_t> rows_of_label;
  for (const int32_t label : labels) ++rows_of_label[label];
  return rows_of_label;
}

LabelGraph::LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind,
                       double kernel_denominator)
    : LabelGraph(labels, CountLabels(labels), AllRows(static_cast<Eigen::Index>(labels.size())),
                 kind, kernel_denominator) {}

LabelGraph::LabelGraph(absl::Span<const int32_t> labels,
                       const std::map<int32_t, int64_t>& rows_of_label,
                       std::shared_ptr<const RowShare> share, LabelGraphKind kind,
                       double kernel_denominator)
    : share_(std::move(share)) {
  std::vector<int32_t> distinct;
  Vector label_values(static_cast<Eigen::Index>(rows_of_label.size()));
  Vector count(label_values.size());
  for (const auto& [label, rows] : rows_of_label) {
    const auto at = static_cast<Eigen::Index>(distinct.size());
    label_values[at] = label;
    count[at] = static_cast<double>(rows);
    distinct.push_back(label);
  }
  class_of_row_.reserve(labels.size());
  for (const int32_t label : labels) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), label) - distinct.begin();
    class_of_row_.push_back(static_cast<int32_t>(at));
  }
  affinity_ = ClassAffinity(label_values, count, kind, kernel_denominator);
  class_degree_ = affinity_ * count;
}

void LabelGraph::AddClassSums(const Matrix& v, Eigen::Index first, Eigen::Index count,
                              Vector* sums) const {
  Eigen::Map<Matrix> of_class(sums->data(), affinity_.rows(), v.cols());
  for (Eigen::Index i = first; i < first + count; ++i) of_class.row(class_of_row_[i]) += v.row(i);
}

Matrix LabelGraph::MultiplyLaplacian(const Matrix& v) const {
  Matrix product = Matrix::Zero(v.rows(), v.cols());
  const Vector class_sums = SumOverRows(share_->groups(), affinity_.rows() * v.cols(),
                                        [&](Eigen::Index first, Eigen::Index count, Vector* sums) {
                                          AddClassSums(v, first, count, sums);
                                        });
  AddLaplacian(1, v, class_sums, &product);
  return product;
}

absl::Status LabelGraph::AddLaplacian(double weight, const Matrix& v, Matrix* sum) const {
  PM_ASSIGN_OR_RETURN(const Vector class_sums,
                      share_->Sum(affinity_.rows() * v.cols(),
                                  [&](Eigen::Index first, Eigen::Index count, Vector* sums) {
                                    AddClassSums(v, first, count, sums);
                                  }));
  AddLaplacian(weight, v, class_sums, sum);
  return absl::OkStatus();
}

void LabelGraph::AddLaplacian(double weight, const Matrix& v, const Vector& class_sums,
                              Matrix* sum) const {
  const Matrix affine_sum =
      affinity_ * Eigen::Map<const Matrix>(class_sums.data(), affinity_.rows(), v.cols());
  for (Eigen::Index i = 0; i < size(); ++i) {
    const int32_t c = class_of_row_[i];
    sum->row(i) += weight * (class_degree_[c] * v.row(i) - affine_sum.row(c));
  }
}

}  // namespace privatemail

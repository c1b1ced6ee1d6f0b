// Graph Laplacian over labels, as a linear operator.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "common/numerics/row_share.h"

namespace privatemail {

// Numbers are those of v1.LabelGraph and enter a collection's digest.
enum class LabelGraphKind {
  // A = -1/2 J |y_i - y_j| J, J = I - 11'/n: the authors' released code. The default.
  kDistance = 1,
  kKernel = 2,        // Gaussian kernel over the integer labels: the second paper's text
  kOneHotKernel = 3,  // Gaussian kernel over one-hot labels: the first paper
};

std::map<int32_t, int64_t> CountLabels(absl::Span<const int32_t> labels);

// The Laplacian L_Y = Diag(A 1) - A. A_ij depends on the classes of i and j only, so a product
// needs only the sum of each class; A's diagonal cancels.
// - O(n k + C^2 k) time, O(n + C^2) memory for C classes; exact up to rounding.
// - Classes are summed in groups of rows (row_share.h).
// - Immutable and thread-safe. Labels by slot are public, and so is a client's graph.
class LabelGraph {
 public:
  // labels: n, one a row; kernel_denominator: c > 0, used by the two kernel graphs.
  LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind, double kernel_denominator);
  // For rows shared by processes. labels: one a local row; rows_of_label: counts over all rows.
  LabelGraph(absl::Span<const int32_t> labels, const std::map<int32_t, int64_t>& rows_of_label,
             std::shared_ptr<const RowShare> share, LabelGraphKind kind, double kernel_denominator);

  // Local rows.
  Eigen::Index size() const { return static_cast<Eigen::Index>(class_of_row_.size()); }
  const std::shared_ptr<const RowShare>& share() const { return share_; }
  // Sum of A between a local row and all rows including itself.
  double DegreeOf(Eigen::Index row) const {
    return class_degree_[class_of_row_[static_cast<size_t>(row)]];
  }

  // L_Y v for a graph whose rows are all local. v: n x k.
  Matrix MultiplyLaplacian(const Matrix& v) const;
  // Adds weight * L_Y v to `sum`, both over local rows. Errors: those of the share.
  absl::Status AddLaplacian(double weight, const Matrix& v, Matrix* sum) const;

 private:
  void AddClassSums(const Matrix& v, Eigen::Index first, Eigen::Index count, Vector* sums) const;
  void AddLaplacian(double weight, const Matrix& v, const Vector& class_sums, Matrix* sum) const;

  std::shared_ptr<const RowShare> share_;
  std::vector<int32_t> class_of_row_;  // n, index into the distinct labels in ascending order
  Matrix affinity_;                    // C x C: A between rows of two classes
  Vector class_degree_;                // C: row sum of A, diagonal included
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_

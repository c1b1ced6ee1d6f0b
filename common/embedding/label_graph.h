// The Laplacian L_Y of a graph over labels, as something that multiplies.
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

// L_Y = Diag(A 1) - A. A_ij depends on the classes of i and j alone, so a product needs only the
// sum of every class: O(n k + C^2 k) time for C classes, O(n + C^2) memory, exact up to rounding.
// (What stands on A's diagonal cancels in the Laplacian.) Classes are added up in groups of rows
// (row_groups.h). Immutable and thread-safe. Labels by slot are public, so a client's graph is,
// too.
class LabelGraph {
 public:
  // labels: n values, one a row; kernel_denominator: c > 0, used by the two kernel graphs.
  LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind, double kernel_denominator);
  // Where some of the rows are elsewhere. labels: one a row here, each of them among rows_of_label,
  // which counts all rows.
  LabelGraph(absl::Span<const int32_t> labels, const std::map<int32_t, int64_t>& rows_of_label,
             std::shared_ptr<const RowShare> share, LabelGraphKind kind, double kernel_denominator);

  // Rows here.
  Eigen::Index size() const { return static_cast<Eigen::Index>(class_of_row_.size()); }
  const std::shared_ptr<const RowShare>& share() const { return share_; }
  // Sum of A between a row here and all rows, itself counted.
  double DegreeOf(Eigen::Index row) const {
    return class_degree_[class_of_row_[static_cast<size_t>(row)]];
  }

  // L_Y v of a graph whose rows are all here. v: n x k.
  Matrix MultiplyLaplacian(const Matrix& v) const;
  // Adds weight L_Y v to `sum`; both are of the rows here. Errors: those of the share.
  absl::Status AddLaplacian(double weight, const Matrix& v, Matrix* sum) const;

 private:
  void AddClassSums(const Matrix& v, Eigen::Index first, Eigen::Index count, Vector* sums) const;
  void AddLaplacian(double weight, const Matrix& v, const Vector& class_sums, Matrix* sum) const;

  std::shared_ptr<const RowShare> share_;
  std::vector<int32_t> class_of_row_;  // n, index into the distinct labels in ascending order
  Matrix affinity_;                    // C x C: A between rows of two classes
  Vector class_degree_;  // C: row sum of A, its diagonal counted like any entry of the class
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_

// Graph Laplacian over labels, as a linear operator.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/matrix.h"

namespace privatemail {

// Numbers are those of v1.LabelGraph and enter a collection's digest.
enum class LabelGraphKind {
  // A = -1/2 J |y_i - y_j| J, J = I - 11'/n: the authors' released code.
  kDistance = 1,
  kKernel = 2,        // Gaussian kernel over the integer labels: the second paper's text
  kOneHotKernel = 3,  // Gaussian kernel over one-hot labels: the first paper
  // L_Y x = n Phi (Phi' M x) / C at the rows of each class: Phi the class code (C x k, below), M x
  // the mean of each class. Ours; PRIVACY.md section 1.
  // - Every class weighs 1/C, however many rows it has, and labels enter by their order alone. So
  //   clouds with other rows of the same classes have the same image of the classes.
  // - All k directions of the code share one eigenvalue, so no number of steps collapses them.
  kBalanced = 4,
};

// Phi, a public point for each class: C x k, columns centred and orthogonal with mean square 1.
// Row c for k >= 2: sqrt(2) (cos, sin)(2 pi h c / C) for h = 1, 2, ... (the alternating column of
// an even C: 1, -1, ...); for k = 1: equally spaced on a line. Columns beyond the C - 1 that exist
// are zero.
Matrix ClassCode(Eigen::Index classes, Eigen::Index k);

// The Laplacian L_Y = Diag(A 1) - A. A_ij depends on the classes of i and j only, so a product
// needs only the sum of each class; A's diagonal cancels.
// - O(n k + C k) time and O(n + C k) memory for C classes; exact up to rounding. kKernel takes C k
//   times the labels within its reach, kBalanced O(n k + C k^2).
// - Classes are summed in groups of rows (row_groups.h).
// - Immutable and thread-safe. Labels by slot are public, and so is a client's graph.
class LabelGraph {
 public:
  // labels: n, one a row; kernel_denominator: c > 0, used by the two kernel graphs.
  LabelGraph(absl::Span<const int32_t> labels, LabelGraphKind kind, double kernel_denominator);

  LabelGraphKind kind() const { return kind_; }
  Eigen::Index size() const { return static_cast<Eigen::Index>(class_of_row_.size()); }

  // L_Y v. v: n x k.
  Matrix MultiplyLaplacian(const Matrix& v) const;
  // Adds weight * L_Y v to `sum`.
  void AddLaplacian(double weight, const Matrix& v, Matrix* sum) const;

  // The class code of each row: size() x k.
  Matrix CodeOfRows(Eigen::Index k) const;
  // Phi' M v / C, k x k: the class means of v in terms of the class code; I where they equal it.
  Matrix ClassMeansInCode(const Matrix& v) const;

 private:
  Eigen::Index classes() const { return count_.size(); }
  Matrix ClassSums(const Matrix& v) const;
  Matrix MultiplyAffinity(const Matrix& class_sums) const;  // C x k

  LabelGraphKind kind_;
  double kernel_denominator_;
  std::vector<int32_t> class_of_row_;  // n, index into the distinct labels in ascending order
  Vector label_;                       // C, ascending
  Vector count_;                       // C: rows
  Vector class_degree_;                // C: row sum of A, diagonal included
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_LABEL_GRAPH_H_

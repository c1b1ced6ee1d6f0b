// Exact k nearest neighbours by full scan, and the bounded list that collects them.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

struct Neighbor {
  int64_t row = 0;  // in the searched points
  double squared_distance = 0;
};

// |a - b|^2 of `size` coordinates. Differences are squared in double, so equal points have distance
// 0. The order of roundings is fixed (four partial sums): every search gets the same bits and
// therefore the same ties.
inline double SquaredDistance(const double* a, const double* b, Eigen::Index size) {
  std::array<double, 4> sums = {};
  for (Eigen::Index i = 0; i < size; ++i) {
    const double difference = a[i] - b[i];
    double& sum = sums[static_cast<size_t>(i % 4)];
    sum = std::fma(difference, difference, sum);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The k rows nearest to a query among the candidates offered; ties go to the smaller row.
class TopK {
 public:
  // skipped: rows marked true are ignored; null: none. It must outlive this.
  TopK(int64_t count, const std::vector<bool>* skipped);

  void Offer(const Neighbor& candidate) {
    // Rejects most candidates by one comparison.
    if (full() && count_ > 0 && candidate.squared_distance > max_squared_distance()) return;
    Insert(candidate);
  }
  // Whether the candidate, if not skipped, would be one of them.
  bool Accepts(const Neighbor& candidate) const;
  bool full() const { return best_.size() == count_; }
  size_t size() const { return best_.size(); }
  // Largest squared distance among them. Requires size() > 0.
  double max_squared_distance() const { return best_.front().squared_distance; }

  // Nearest first. Call once.
  std::vector<Neighbor> Sorted();

 private:
  void Insert(const Neighbor& candidate);
  void ReplaceFarthest(const Neighbor& candidate);

  size_t count_;
  const std::vector<bool>* skipped_;
  std::vector<Neighbor>
      best_;  // by distance, then row: farthest first, or a max-heap if they are many
};

// The min(count, n) rows of `points` (n x d) nearest to each row of `queries` (m x d).
// - Order: nearest first, ties by the smaller row.
// - skipped: n flags of rows to ignore, or null.
// - O(m n d) time, O(count) memory a query.
std::vector<std::vector<Neighbor>> NearestRows(const Matrix& queries, const Matrix& points,
                                               int64_t count,
                                               const std::vector<bool>* skipped = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

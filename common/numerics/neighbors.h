// Exact k nearest neighbours by full scan.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

struct Neighbor {
  int64_t row = 0;  // of the searched points
  double squared_distance = 0;
};

// |a - b|^2 of `size` coordinates: differences are squared in double, never expanded, so equal
// points have distance 0. Four sums side by side with every rounding spelled out: wherever it is
// compiled into a search it gives the same bits, so that all searches agree about ties.
inline double SquaredDistance(const double* a, const double* b, Eigen::Index size) {
  std::array<double, 4> sums = {};
  for (Eigen::Index i = 0; i < size; ++i) {
    const double difference = a[i] - b[i];
    double& sum = sums[static_cast<size_t>(i % 4)];
    sum = std::fma(difference, difference, sum);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The rows nearest to a query among those that have been offered; of equally near ones the smaller.
class TopK {
 public:
  // skipped: rows that are true are not taken; null: none. It must outlive this.
  TopK(int64_t count, const std::vector<bool>* skipped);

  void Offer(const Neighbor& candidate) {
    // Most points are dismissed by one comparison.
    if (full() && count_ > 0 && candidate.squared_distance > farthest()) return;
    Take(candidate);
  }
  // Whether Offer would take it, were it not skipped.
  bool Wants(const Neighbor& candidate) const;
  bool full() const { return best_.size() == count_; }
  size_t size() const { return best_.size(); }
  // The squared distance of the farthest that is kept. Requires one.
  double farthest() const { return best_.front().squared_distance; }

  // Nearest first. Call once.
  std::vector<Neighbor> Sorted();

 private:
  void Take(const Neighbor& candidate);
  void ReplaceFarthest(const Neighbor& candidate);

  size_t count_;
  const std::vector<bool>* skipped_;
  std::vector<Neighbor> best_;  // a heap with the farthest on top
};

// The min(count, n) rows of `points` (n x d) nearest to each row of `queries` (m x d), nearest
// first, ties by the smaller row, without those that are `skipped` (n, or null for none). O(m n d)
// time, O(count) memory a query.
std::vector<std::vector<Neighbor>> NearestRows(const Matrix& queries, const Matrix& points,
                                               int64_t count,
                                               const std::vector<bool>* skipped = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_NEIGHBORS_H_

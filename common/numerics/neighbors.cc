#include "common/numerics/neighbors.h"

#include <algorithm>

namespace privatemail {
namespace {

bool Nearer(const Neighbor& a, const Neighbor& b) {
  return a.squared_distance != b.squared_distance ? a.squared_distance < b.squared_distance
                                                  : a.row < b.row;
}

}  // namespace

std::vector<std::vector<Neighbor>> NearestRows(const Matrix& queries, const Matrix& points,
                                               int64_t k) {
  const auto wanted = static_cast<size_t>(std::min<int64_t>(k, points.rows()));
  std::vector<std::vector<Neighbor>> nearest(static_cast<size_t>(queries.rows()));
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    // A heap with the farthest of the best on top: most points are dismissed by one comparison.
    std::vector<Neighbor>& best = nearest[static_cast<size_t>(q)];
    best.reserve(wanted + 1);
    for (Eigen::Index row = 0; row < points.rows(); ++row) {
      const Neighbor candidate{row, (points.row(row) - queries.row(q)).squaredNorm()};
      if (best.size() == wanted && !Nearer(candidate, best.front())) continue;
      best.push_back(candidate);
      std::push_heap(best.begin(), best.end(), Nearer);
      if (best.size() > wanted) {
        std::pop_heap(best.begin(), best.end(), Nearer);
        best.pop_back();
      }
    }
    std::sort_heap(best.begin(), best.end(), Nearer);
  }
  return nearest;
}

}  // namespace privatemail

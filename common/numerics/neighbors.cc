#include "common/numerics/neighbors.h"

#include <algorithm>
#include <utility>

namespace privatemail {
namespace {

// An object rather than a function, so that heap functions inline it.
constexpr auto kNearer = [](const Neighbor& a, const Neighbor& b) {
  return a.squared_distance != b.squared_distance ? a.squared_distance < b.squared_distance
                                                  : a.row < b.row;
};

// Capacity that is reserved at once.
constexpr size_t kReservedCount = 64;

// Up to this count a sorted list, farthest first, is faster than a heap.
constexpr size_t kMaxSortedCount = 16;

}  // namespace

TopK::TopK(int64_t count, const std::vector<bool>* skipped)
    : count_(static_cast<size_t>(std::max<int64_t>(count, 0))), skipped_(skipped) {
  best_.reserve(std::min(count_, kReservedCount));
}

bool TopK::Accepts(const Neighbor& candidate) const {
  return !full() || (count_ > 0 && kNearer(candidate, best_.front()));
}

void TopK::Insert(const Neighbor& candidate) {
  if (!Accepts(candidate)) return;
  if (skipped_ != nullptr && (*skipped_)[static_cast<size_t>(candidate.row)]) return;
  if (full()) return ReplaceFarthest(candidate);
  best_.push_back(candidate);
  if (count_ > kMaxSortedCount) return std::push_heap(best_.begin(), best_.end(), kNearer);
  auto place = best_.end() - 1;
  for (; place != best_.begin() && kNearer(place[-1], candidate); --place) *place = place[-1];
  *place = candidate;
}

// One pass from the top down, where pop_heap and push_heap take two.
void TopK::ReplaceFarthest(const Neighbor& candidate) {
  size_t place = 0;
  if (count_ <= kMaxSortedCount) {
    for (; place + 1 < count_ && kNearer(candidate, best_[place + 1]); ++place) {
      best_[place] = best_[place + 1];
    }
    best_[place] = candidate;
    return;
  }
  for (size_t child = 1; child < best_.size(); child = 2 * place + 1) {
    if (child + 1 < best_.size() && kNearer(best_[child], best_[child + 1])) ++child;
    if (!kNearer(candidate, best_[child])) break;
    best_[place] = best_[child];
    place = child;
  }
  best_[place] = candidate;
}

std::vector<Neighbor> TopK::Sorted() {
  if (count_ <= kMaxSortedCount) {
    std::reverse(best_.begin(), best_.end());
  } else {
    std::sort_heap(best_.begin(), best_.end(), kNearer);
  }
  return std::move(best_);
}

std::vector<std::vector<Neighbor>> NearestRows(const Matrix& queries, const Matrix& points,
                                               int64_t count, const std::vector<bool>* skipped) {
  std::vector<std::vector<Neighbor>> nearest;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    TopK best(count, skipped);
    const double* query = queries.data() + q * queries.cols();
    for (Eigen::Index row = 0; row < points.rows(); ++row) {
      const double* point = points.data() + row * points.cols();
      best.Offer({row, SquaredDistance(point, query, points.cols())});
    }
    nearest.push_back(best.Sorted());
  }
  return nearest;
}

}  // namespace privatemail

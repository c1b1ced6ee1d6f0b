#include "server/index/exact_index.h"

#include <utility>

namespace privatemail {

ExactIndex::ExactIndex(Matrix points) : points_(std::move(points)) {}

std::vector<Neighbor> ExactIndex::Search(const RowVector& query, int64_t count) const {
  return NearestRows(query, points_, count).front();
}

}  // namespace privatemail

#include "common/index/find_item_cells.h"

#include "common/index/k_means.h"

namespace privatemail {

ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped) {
  ItemCells found{.cells = NearestCentroids(items, centroids, stopped), .squared_distances = {}};
  if (stopped != nullptr && *stopped) return found;
  found.squared_distances.reserve(found.cells.size());
  for (size_t item = 0; item < found.cells.size(); ++item) {
    found.squared_distances.push_back(
        (items.row(static_cast<Eigen::Index>(item)) - centroids.row(found.cells[item]))
            .squaredNorm());
  }
  return found;
}

}  // namespace privatemail

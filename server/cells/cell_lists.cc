#include "server/cells/cell_lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace privatemail {

std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const Matrix& gallery,
                                            const Matrix& centroids, double epsilon,
                                            int64_t length) {
  // Of a searcher of another cell, beside one of this.
  const auto other = static_cast<float>(std::exp(-epsilon));
  const Vector squares = gallery.rowwise().squaredNorm();
  std::vector<std::vector<int64_t>> lists;
  for (Eigen::Index cell = 0; cell < demand.cells(); ++cell) {
    const Eigen::RowVectorXf wanted =
        (1 - other) * demand.from_cell().row(cell) + other * demand.total();
    // Up to what all of them have in common.
    const Vector distances = squares - 2 * gallery * centroids.row(cell).transpose();
    std::vector<int64_t> rows(static_cast<size_t>(demand.items()));
    std::iota(rows.begin(), rows.end(), 0);
    const auto before = [&](int64_t a, int64_t b) {
      if (wanted[a] != wanted[b]) return wanted[a] > wanted[b];
      if (distances[a] != distances[b]) return distances[a] < distances[b];
      return a < b;
    };
    const auto end = rows.begin() + length;
    if (end != rows.end()) std::nth_element(rows.begin(), end, rows.end(), before);
    std::sort(rows.begin(), end, before);
    lists.emplace_back(rows.begin(), end);
  }
  return lists;
}

}  // namespace privatemail

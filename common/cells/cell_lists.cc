#include "common/cells/cell_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace privatemail {

double QuantiseEpsilon(double epsilon) {
  constexpr double kSmallest = 1. / 16, kLargest = 32;
  return std::exp2(std::round(2 * std::log2(std::clamp(epsilon, kSmallest, kLargest))) / 2);
}

std::vector<int64_t> CellList(const Demand& demand, const ItemCells& lie, int64_t cell,
                              double epsilon, int64_t length) {
  // Of a searcher of another cell, beside one of this.
  const auto other = static_cast<float>(std::exp(-epsilon));
  const Eigen::RowVectorXf wanted = demand.Around(cell, other);
  const auto distance = [&](int64_t row) {
    const auto item = static_cast<size_t>(row);
    return lie.cells[item] == cell ? lie.squared_distances[item]
                                   : std::numeric_limits<float>::infinity();
  };
  const auto before = [&](int64_t a, int64_t b) {
    if (wanted[a] != wanted[b]) return wanted[a] > wanted[b];
    if (distance(a) != distance(b)) return distance(a) < distance(b);
    return a < b;
  };
  std::vector<int64_t> rows(static_cast<size_t>(demand.items()));
  std::iota(rows.begin(), rows.end(), 0);
  const auto end = rows.begin() + length;
  if (end != rows.end()) std::nth_element(rows.begin(), end, rows.end(), before);
  std::sort(rows.begin(), end, before);
  return {rows.begin(), end};
}

std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const ItemCells& lie,
                                            double epsilon, int64_t length) {
  std::vector<std::vector<int64_t>> lists;
  for (int64_t cell = 0; cell < demand.cells(); ++cell) {
    lists.push_back(CellList(demand, lie, cell, epsilon, length));
  }
  return lists;
}

}  // namespace privatemail

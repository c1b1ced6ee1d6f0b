#include "common/cells/cell_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace privatemail {

std::vector<float> Demand::Weights(size_t neighbours, double ranks_per_fold) {
  std::vector<float> weights(neighbours);
  float sum = 0;
  for (size_t rank = 0; rank < neighbours; ++rank) {
    weights[rank] = static_cast<float>(std::exp(-static_cast<double>(rank) / ranks_per_fold));
    sum += weights[rank];
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

Demand::Demand(const KnownQueries& queries, int64_t cells, int64_t items, double ranks_per_fold)
    : from_cell_(static_cast<size_t>(cells)), total_(Eigen::RowVectorXf::Zero(items)) {
  std::vector<std::vector<size_t>> queries_of(static_cast<size_t>(cells));
  for (size_t query = 0; query < queries.cells.size(); ++query) {
    queries_of[static_cast<size_t>(queries.cells[query])].push_back(query);
  }
  Eigen::RowVectorXf sum = Eigen::RowVectorXf::Zero(items);
  for (size_t cell = 0; cell < queries_of.size(); ++cell) {
    std::vector<int64_t> touched;
    for (const size_t query : queries_of[cell]) {
      const std::vector<int64_t>& nearest = queries.nearest[query];
      const std::vector<float> weights = Weights(nearest.size(), ranks_per_fold);
      for (size_t rank = 0; rank < nearest.size(); ++rank) {
        if (sum[nearest[rank]] == 0) touched.push_back(nearest[rank]);
        sum[nearest[rank]] += weights[rank];
      }
    }
    std::sort(touched.begin(), touched.end());
    for (const int64_t item : touched) {
      from_cell_[cell].push_back({item, sum[item]});
      total_[item] += sum[item];
      sum[item] = 0;
    }
  }
}

Eigen::RowVectorXf Demand::ForCell(int64_t cell, float other) const {
  Eigen::RowVectorXf weighted = other * total_;
  for (const ItemWeight& one : from_cell_[static_cast<size_t>(cell)]) {
    weighted[one.item] += (1 - other) * one.weight;
  }
  return weighted;
}

double QuantiseEpsilon(double epsilon) {
  constexpr double kMin = 1. / 16, kMax = 32;
  return std::exp2(std::round(2 * std::log2(std::clamp(epsilon, kMin, kMax))) / 2);
}

std::vector<int64_t> CellList(const Demand& demand, const ItemCells& item_cells, int64_t cell,
                              double epsilon, int64_t length) {
  // Weight of each other cell against 1 for this one.
  const auto other = static_cast<float>(std::exp(-epsilon));
  const Eigen::RowVectorXf wanted = demand.ForCell(cell, other);
  const auto distance = [&](int64_t row) {
    const auto item = static_cast<size_t>(row);
    return item_cells.cells[item] == cell ? item_cells.squared_distances[item]
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

std::vector<std::vector<int64_t>> CellLists(const Demand& demand, const ItemCells& item_cells,
                                            double epsilon, int64_t length) {
  std::vector<std::vector<int64_t>> lists;
  for (int64_t cell = 0; cell < demand.cells(); ++cell) {
    lists.push_back(CellList(demand, item_cells, cell, epsilon, length));
  }
  return lists;
}

}  // namespace privatemail

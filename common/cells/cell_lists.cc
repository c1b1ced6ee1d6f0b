#include "common/cells/cell_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace privatemail {

namespace {

constexpr double kRanksPerFold = 20;

// Exponents of sqrt(2) of the epsilons for which there are lists.
constexpr int kMinStep = -8, kMaxStep = 10;

double EpsilonOfStep(int step) { return std::exp2(step / 2.); }

std::vector<std::vector<Demand::ItemWeight>> DemandOfCells(const KnownQueries& queries,
                                                           int64_t cells, int64_t items) {
  std::vector<std::vector<size_t>> queries_of(static_cast<size_t>(cells));
  for (size_t query = 0; query < queries.cells.size(); ++query) {
    queries_of[static_cast<size_t>(queries.cells[query])].push_back(query);
  }
  std::vector<std::vector<Demand::ItemWeight>> of_cells(queries_of.size());
  Eigen::RowVectorXf sum = Eigen::RowVectorXf::Zero(items);
  for (size_t cell = 0; cell < queries_of.size(); ++cell) {
    std::vector<int64_t> touched;
    for (const size_t query : queries_of[cell]) {
      const std::vector<int64_t>& nearest = queries.nearest[query];
      const std::vector<float> weights = Demand::Weights(nearest.size());
      for (size_t rank = 0; rank < nearest.size(); ++rank) {
        if (sum[nearest[rank]] == 0) touched.push_back(nearest[rank]);
        sum[nearest[rank]] += weights[rank];
      }
    }
    std::sort(touched.begin(), touched.end());
    for (const int64_t item : touched)
      of_cells[cell].push_back({item, std::exchange(sum[item], 0)});
  }
  return of_cells;
}

}  // namespace

std::vector<float> Demand::Weights(size_t neighbours) {
  std::vector<float> weights(neighbours);
  float sum = 0;
  for (size_t rank = 0; rank < neighbours; ++rank) {
    weights[rank] = static_cast<float>(std::exp(-static_cast<double>(rank) / kRanksPerFold));
    sum += weights[rank];
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

Demand::Demand(const KnownQueries& queries, int64_t cells, int64_t items)
    : Demand(DemandOfCells(queries, cells, items), items) {}

Demand::Demand(std::vector<std::vector<ItemWeight>> of_cells, int64_t items)
    : from_cell_(std::move(of_cells)), total_(Eigen::RowVectorXf::Zero(items)) {
  for (const std::vector<ItemWeight>& of_cell : from_cell_) {
    for (const ItemWeight& one : of_cell) total_[one.item] += one.weight;
  }
}

Eigen::RowVectorXf Demand::ForCell(int64_t cell, float other) const {
  Eigen::RowVectorXf weighted = other * total_;
  for (const ItemWeight& one : from_cell_[static_cast<size_t>(cell)]) {
    weighted[one.item] += (1 - other) * one.weight;
  }
  return weighted;
}

std::vector<double> ListEpsilons() {
  std::vector<double> epsilons;
  for (int step = kMinStep; step <= kMaxStep; ++step) epsilons.push_back(EpsilonOfStep(step));
  return epsilons;
}

double QuantiseEpsilon(double epsilon) {
  const double clamped = std::clamp(epsilon, EpsilonOfStep(kMinStep), EpsilonOfStep(kMaxStep));
  return EpsilonOfStep(static_cast<int>(std::lround(2 * std::log2(clamped))));
}

CellOrder::CellOrder(const Demand& demand, const ItemCells& item_cells, int64_t cell,
                     double epsilon)
    : item_cells_(&item_cells),
      cell_(cell),
      other_(static_cast<float>(std::exp(-epsilon))),
      demand_(demand.ForCell(cell, other_)) {}

bool CellOrder::IsBefore(int64_t a, float demand_a, int64_t b, float demand_b) const {
  if (demand_a != demand_b) return demand_a > demand_b;
  const auto distance = [&](int64_t row) {
    const auto item = static_cast<size_t>(row);
    return item_cells_->cells[item] == cell_ ? item_cells_->squared_distances[item]
                                             : std::numeric_limits<float>::infinity();
  };
  if (distance(a) != distance(b)) return distance(a) < distance(b);
  return a < b;
}

std::vector<int64_t> CellOrder::First(int64_t length) const {
  const auto before = [&](int64_t a, int64_t b) { return IsBefore(a, demand_[a], b, demand_[b]); };
  std::vector<int64_t> rows(static_cast<size_t>(demand_.size()));
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
    lists.push_back(CellOrder(demand, item_cells, cell, epsilon).First(length));
  }
  return lists;
}

}  // namespace privatemail

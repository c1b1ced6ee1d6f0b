#include "common/cells/demand.h"

#include <algorithm>
#include <cmath>

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
    std::vector<int64_t> wanted;
    for (const size_t query : queries_of[cell]) {
      const std::vector<int64_t>& nearest = queries.nearest[query];
      const std::vector<float> weights = Weights(nearest.size(), ranks_per_fold);
      for (size_t rank = 0; rank < nearest.size(); ++rank) {
        if (sum[nearest[rank]] == 0) wanted.push_back(nearest[rank]);
        sum[nearest[rank]] += weights[rank];
      }
    }
    std::sort(wanted.begin(), wanted.end());
    for (const int64_t item : wanted) {
      from_cell_[cell].push_back({item, sum[item]});
      total_[item] += sum[item];
      sum[item] = 0;
    }
  }
}

Eigen::RowVectorXf Demand::Around(int64_t cell, float other) const {
  Eigen::RowVectorXf around = other * total_;
  for (const Wanted& wanted : from_cell_[static_cast<size_t>(cell)]) {
    around[wanted.item] += (1 - other) * wanted.weight;
  }
  return around;
}

}  // namespace privatemail

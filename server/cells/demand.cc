#include "server/cells/demand.h"

#include <algorithm>
#include <cmath>

namespace privatemail {

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
    : from_cell_(FloatMatrix::Zero(cells, items)) {
  for (size_t query = 0; query < queries.nearest.size(); ++query) {
    const std::vector<int64_t>& nearest = queries.nearest[query];
    const std::vector<float> weights = Weights(nearest.size());
    for (size_t rank = 0; rank < nearest.size(); ++rank) {
      from_cell_(queries.cells[query], nearest[rank]) += weights[rank];
    }
  }
  total_ = from_cell_.colwise().sum();
}

}  // namespace privatemail

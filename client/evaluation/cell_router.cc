#include "client/evaluation/cell_router.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace privatemail::client {

std::vector<PrototypeWeight> Blend(const CellRouter& router, const RowVector& query) {
  // Up to what all of them have in common.
  const Eigen::VectorXf distances = router.prototypes.rowwise().squaredNorm() -
                                    2 * (router.prototypes * query.cast<float>().transpose());
  std::vector<int64_t> order(static_cast<size_t>(distances.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto nearer = [&](int64_t a, int64_t b) {
    return distances[a] != distances[b] ? distances[a] < distances[b] : a < b;
  };
  const auto end = order.begin() + std::min(CellRouter::kBlended, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), nearer);
  std::vector<PrototypeWeight> blend;
  double sum = 0;
  for (auto prototype = order.begin(); prototype != end; ++prototype) {
    const double farther = distances[*prototype] - distances[order.front()];
    // Equal ones count the same where there is no bandwidth.
    const double weight = farther > 0 ? std::exp(-farther / router.bandwidth) : 1;
    blend.push_back({*prototype, static_cast<float>(weight)});
    sum += weight;
  }
  for (PrototypeWeight& one : blend) one.weight /= static_cast<float>(sum);
  return blend;
}

Eigen::RowVectorXf ExpectedAnswers(const CellRouter& router,
                                   const std::vector<PrototypeWeight>& blend) {
  Eigen::RowVectorXf answers = Eigen::RowVectorXf::Zero(router.answered.cols());
  for (const PrototypeWeight& one : blend) {
    answers += one.weight * router.answered.row(one.prototype);
  }
  return answers;
}

std::vector<int64_t> RankedCells(const CellRouter& router, const RowVector& query) {
  const Eigen::RowVectorXf answers = ExpectedAnswers(router, Blend(router, query));
  std::vector<int64_t> cells(static_cast<size_t>(answers.size()));
  std::iota(cells.begin(), cells.end(), 0);
  const auto better = [&](int64_t a, int64_t b) {
    return answers[a] != answers[b] ? answers[a] > answers[b] : a < b;
  };
  std::sort(cells.begin(), cells.end(), better);
  return cells;
}

}  // namespace privatemail::client

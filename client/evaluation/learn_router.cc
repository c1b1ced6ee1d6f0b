#include "client/evaluation/learn_router.h"

#include <algorithm>
#include <utility>

#include "common/cells/cell_lists.h"
#include "common/cells/demand.h"
#include "common/numerics/neighbors.h"
#include "common/index/exact_index.h"

namespace privatemail::client {
namespace {

constexpr int kRounds = 5;
// Of the mean squared distance between a query and the nearest prototype.
constexpr double kBandwidthShare = .1;

using Lists = std::vector<std::vector<int64_t>>;
using Blends = std::vector<std::vector<PrototypeWeight>>;

std::vector<int64_t> NearestTo(const Matrix& queries, const Matrix& centroids) {
  std::vector<int64_t> cells;
  for (const std::vector<Neighbor>& nearest : NearestRows(queries, centroids, 1)) {
    cells.push_back(nearest.front().row);
  }
  return cells;
}

double BandwidthFor(const Matrix& queries, const FloatMatrix& prototypes) {
  double sum = 0;
  const ExactIndex index(prototypes.cast<double>());
  for (const std::vector<Neighbor>& nearest : index.Search(queries, 1)) {
    sum += nearest.front().squared_distance;
  }
  return kBandwidthShare * sum / static_cast<double>(queries.rows());
}

// Which cells answer with each item.
Lists CellsOf(const Lists& lists, Eigen::Index items) {
  Lists cells(static_cast<size_t>(items));
  for (size_t cell = 0; cell < lists.size(); ++cell) {
    for (const int64_t row : lists[cell]) {
      cells[static_cast<size_t>(row)].push_back(static_cast<int64_t>(cell));
    }
  }
  return cells;
}

// What the queries around each prototype find in each cell, on a weighted average.
FloatMatrix Answered(const Lists& nearest, const Lists& cells_of, const Blends& blends,
                     Eigen::Index prototypes, Eigen::Index cells) {
  FloatMatrix answered = FloatMatrix::Zero(prototypes, cells);
  Eigen::VectorXf weights = Eigen::VectorXf::Zero(prototypes);
  Eigen::RowVectorXf found(cells);
  for (size_t query = 0; query < nearest.size(); ++query) {
    found.setZero();
    const std::vector<float> wanted = Demand::Weights(nearest[query].size());
    for (size_t rank = 0; rank < nearest[query].size(); ++rank) {
      for (const int64_t cell : cells_of[static_cast<size_t>(nearest[query][rank])]) {
        found[cell] += wanted[rank];
      }
    }
    for (const PrototypeWeight& one : blends[query]) {
      answered.row(one.prototype) += one.weight * found;
      weights[one.prototype] += one.weight;
    }
  }
  for (Eigen::Index prototype = 0; prototype < prototypes; ++prototype) {
    if (weights[prototype] > 0) answered.row(prototype) /= weights[prototype];
  }
  return answered;
}

}  // namespace

LearntCells LearnRouter(const Matrix& queries, const Lists& nearest, const ItemCells& lie,
                        const Matrix& centroids, const FloatMatrix& prototypes, double epsilon,
                        int64_t length) {
  const auto items = std::ssize(lie.cells);
  LearntCells learnt;
  CellRouter& router = learnt.router;
  router.prototypes = prototypes;
  router.bandwidth = BandwidthFor(queries, prototypes);
  Blends blends;
  for (Eigen::Index query = 0; query < queries.rows(); ++query) {
    blends.push_back(Blend(router, queries.row(query)));
  }
  KnownQueries known{.nearest = nearest, .cells = NearestTo(queries, centroids)};
  const auto make_lists = [&] {
    const Demand demand(known, centroids.rows(), items);
    learnt.lists = CellLists(demand, lie, epsilon, length);
  };
  const auto measure = [&] {
    router.answered = Answered(nearest, CellsOf(learnt.lists, items), blends, prototypes.rows(),
                               centroids.rows());
  };
  make_lists();
  for (int round = 0; round < kRounds; ++round) {
    measure();
    for (size_t query = 0; query < blends.size(); ++query) {
      ExpectedAnswers(router, blends[query]).maxCoeff(&known.cells[query]);
    }
    make_lists();
  }
  measure();  // of the lists that remain
  return learnt;
}

}  // namespace privatemail::client

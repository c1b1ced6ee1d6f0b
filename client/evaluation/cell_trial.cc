#include "client/evaluation/cell_trial.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "client/evaluation/metrics.h"
#include "client/evaluation/seeded_bits.h"
#include "client/privacy/cell_mechanism.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/cells/demand.h"
#include "common/numerics/cell_router.h"
#include "common/numerics/neighbors.h"
#include "server/cells/find_item_cells.h"
#include "server/cells/learn_router.h"
#include "server/index/exact_index.h"
#include "server/index/k_means.h"

namespace privatemail {
namespace {

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

// Of a cell's, on an average: with fewer, cells move with every split, and more of them show where
// single items lie.
constexpr int64_t kFewestPoints = 5;

using Lists = std::vector<std::vector<int64_t>>;

// Every fourth item, in no order that labels could have: splits are random.
bool IsKnown(size_t item) { return item % 4 != 0; }

ItemNeighbors NeighborsAmong(const Matrix& items) {
  const int64_t count = std::min<int64_t>(Demand::kRanks + 1, items.rows());
  ItemNeighbors neighbors;
  for (const std::vector<Neighbor>& nearest : ExactIndex(items).Search(items, count)) {
    std::vector<int64_t>& rows = neighbors.emplace_back();
    for (const Neighbor& neighbor : nearest) rows.push_back(neighbor.row);
    const auto item = std::ssize(neighbors) - 1;
    const auto self = std::find(rows.begin(), rows.end(), item);
    rows.erase(self != rows.end() ? self : rows.end() - 1);  // not there among many equal ones
  }
  return neighbors;
}

std::shared_ptr<const ItemNeighbors> NeighborsOf(const Trial& trial) {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const ItemNeighbors>> {
    return std::make_shared<const ItemNeighbors>(NeighborsAmong(trial.split.gallery.features));
  };
  const std::shared_ptr<Kept> kept = trial.kept.lock();
  return kept == nullptr ? *make() : *kept->item_neighbors.Get(trial.seed, make);
}

// For prototypes of a router: as many as have a few items each.
int64_t PrototypesFor(Eigen::Index items) { return std::clamp<int64_t>(items / 16, 1, 500); }

}  // namespace

struct CellTrial::Cells {
  Lists lists;       // the rows that answer for each
  Matrix centroids;  // where there is no router
  std::optional<CellRouter> router;

  int64_t CellOf(const RowVector& query) const {
    if (router) return BestCells(*router, query, 1)[0];
    return NearestRows(query, centroids, 1)[0][0].row;
  }
};

int64_t ListLength(double share, int64_t k, int64_t items) {
  return std::max<int64_t>(k, std::llround(share * static_cast<double>(items)));
}

CellTrial::CellTrial(std::shared_ptr<const Trial> trial, Kind kind)
    : trial_(std::move(trial)), kind_(kind), neighbors_(NeighborsOf(*trial_)) {}

std::shared_ptr<const FloatMatrix> CellTrial::Centroids(int64_t count) const {
  const DataSplit& split = trial_->split;
  const Matrix& points =
      kind_ == Kind::kOfAnchors ? split.anchors.features : split.gallery.features;
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const FloatMatrix>> {
    return std::make_shared<const FloatMatrix>(KMeans(points.cast<float>(), count, {}));
  };
  return *centroids_.Get(count, make);
}

CellTrial::Cells CellTrial::MakeCells(int64_t count, double epsilon, int64_t length,
                                      bool all) const {
  const Matrix& gallery = trial_->split.gallery.features;
  const ItemNeighbors& neighbors = *neighbors_;
  Cells cells{.lists = {}, .centroids = Centroids(count)->cast<double>(), .router = {}};
  std::vector<Eigen::Index> known;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (all || IsKnown(item)) known.push_back(static_cast<Eigen::Index>(item));
  }
  const Matrix queries = gallery(known, Eigen::all);
  const ItemCells lie = FindItemCells(gallery.cast<float>(), *Centroids(count));
  KnownQueries demanded;
  for (const Eigen::Index item : known) {
    demanded.nearest.push_back(neighbors[static_cast<size_t>(item)]);
  }
  if (kind_ == Kind::kLearnt) {
    const std::shared_ptr<const FloatMatrix> prototypes = Centroids(PrototypesFor(gallery.rows()));
    LearntCells learnt =
        LearnRouter(queries, demanded.nearest, lie, cells.centroids, *prototypes, epsilon, length);
    cells.lists = std::move(learnt.lists);
    cells.router = std::move(learnt.router);
    return cells;
  }
  demanded.cells = NearestCentroids(queries.cast<float>(), *Centroids(count));
  cells.lists = CellLists(Demand(demanded, count, gallery.rows()), lie, epsilon, length);
  return cells;
}

double CellTrial::ExpectedFidelity(int64_t count, double epsilon, int64_t length) const {
  const Cells cells = MakeCells(count, epsilon, length, /*all=*/false);
  const ItemNeighbors& neighbors = *neighbors_;
  const Lists& lists = cells.lists;
  std::vector<std::vector<bool>> answers(lists.size(), std::vector<bool>(neighbors.size()));
  std::vector<int64_t> answered_by(neighbors.size());  // how many cells
  for (size_t cell = 0; cell < lists.size(); ++cell) {
    for (const int64_t row : lists[cell]) {
      answers[cell][static_cast<size_t>(row)] = true;
      ++answered_by[static_cast<size_t>(row)];
    }
  }
  // Of another cell, beside 1 for the own one.
  const double other = std::exp(-epsilon);
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (IsKnown(item)) continue;
    const RowVector features = trial_->split.gallery.features.row(static_cast<Eigen::Index>(item));
    const std::vector<bool>& own = answers[static_cast<size_t>(cells.CellOf(features))];
    const size_t k = std::min(static_cast<size_t>(trial_->k), neighbors[item].size());
    for (size_t rank = 0; rank < k; ++rank) {
      const auto row = static_cast<size_t>(neighbors[item][rank]);
      const double by_own = own[row] ? 1 : 0;
      found += by_own + other * (static_cast<double>(answered_by[row]) - by_own);
      wanted += 1 + other * static_cast<double>(count - 1);
    }
  }
  return found / wanted;
}

CellPlan CellTrial::PlanFor(double epsilon, double share) const {
  CellPlan best{.length = ListLength(share, trial_->k, std::ssize(*neighbors_))};
  const Eigen::Index points = kind_ == Kind::kOfAnchors ? trial_->split.anchors.features.rows()
                                                        : trial_->split.gallery.features.rows();
  int worse = 0;
  for (const int64_t cells : kCellCounts) {
    if (cells > 2 && cells * kFewestPoints > points) break;
    const double fidelity = ExpectedFidelity(cells, epsilon, best.length);
    if (best.cells == 0 || fidelity > best.expected_fidelity) {
      best.cells = cells;
      best.expected_fidelity = fidelity;
      worse = 0;
    } else if (++worse == 2) {  // it rises with the cells, then falls
      break;
    }
  }
  return best;
}

absl::StatusOr<Answers> CellTrial::AskAll(const CellPlan& plan, double epsilon,
                                          const std::string& part) const {
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create({.cells = plan.cells, .ask = 1, .focus = 1, .epsilon = epsilon}));
  const DataSplit& split = trial_->split;
  const Cells cells = MakeCells(plan.cells, epsilon, plan.length, /*all=*/true);
  Answers answers;
  for (size_t target = 0; target < split.targets.labels.size(); ++target) {
    const RowVector features = split.targets.features.row(static_cast<Eigen::Index>(target));
    SeededBits bits(SeedOf(part, trial_->seed, target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked,
                        mechanism.Choose({cells.CellOf(features)}, bits));
    const std::vector<int64_t>& returned = cells.lists[static_cast<size_t>(asked[0])];
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    std::vector<int64_t> found = NearestOf(features, candidates, trial_->k)[0];
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
    answers.Add(ScoreOf(found, split.gallery.labels, split.targets.labels[target],
                        trial_->nearest[target]));
  }
  return answers;
}

}  // namespace privatemail

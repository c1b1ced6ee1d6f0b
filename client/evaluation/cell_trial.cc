#include "client/evaluation/cell_trial.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/index/k_means.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

// Of a cell's, on an average: with fewer, cells move with every split, and more of them show where
// single items lie.
constexpr int64_t kFewestPoints = 5;

std::vector<int64_t> RowsOf(const std::vector<Neighbor>& neighbors) {
  std::vector<int64_t> rows;
  rows.reserve(neighbors.size());
  for (const Neighbor& neighbor : neighbors) rows.push_back(neighbor.row);
  return rows;
}

// Every fourth item, in no order that labels could have: splits are random.
bool IsKnown(size_t item) { return item % 4 != 0; }

ItemNeighbors NeighborsAmong(const Matrix& items) {
  const int64_t count = std::min<int64_t>(Demand::kRanks + 1, items.rows());
  ItemNeighbors neighbors;
  for (const std::vector<Neighbor>& nearest : ExactIndex(items).Search(items, count)) {
    std::vector<int64_t>& rows = neighbors.emplace_back(RowsOf(nearest));
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

absl::StatusOr<CellMechanism> MechanismOf(int64_t cells, double epsilon) {
  if (cells < 2) return absl::FailedPreconditionError("all anchors lie in one cell");
  return CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = epsilon});
}

}  // namespace

struct CellTrial::Cells {
  std::vector<std::vector<int64_t>> lists;  // the rows that answer for each
  Matrix centroids;

  int64_t NearestTo(const RowVector& query) const {
    return NearestRows(query, centroids, 1)[0][0].row;
  }
};

int64_t ListLength(double share, int64_t k, int64_t items) {
  return std::max<int64_t>(k, std::llround(share * static_cast<double>(items)));
}

CellTrial::CellTrial(std::shared_ptr<const Trial> trial)
    : trial_(std::move(trial)), neighbors_(NeighborsOf(*trial_)) {}

int64_t CellTrial::LengthOf(double share) const {
  return ListLength(share, trial_->k, trial_->split.gallery.features.rows());
}

std::shared_ptr<const FloatMatrix> CellTrial::Centroids(int64_t count) const {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const FloatMatrix>> {
    return std::make_shared<const FloatMatrix>(
        KMeans(trial_->split.anchors.features.cast<float>(), count, {}));
  };
  return *centroids_.Get(count, make);
}

CellTrial::Cells CellTrial::MakeCells(const CellPlan& plan, double epsilon, bool all) const {
  const Matrix& gallery = trial_->split.gallery.features;
  const FloatMatrix& centroids = *Centroids(plan.cells);
  Cells cells{.lists = {}, .centroids = centroids.cast<double>()};
  KnownQueries known;
  for (size_t item = 0; item < neighbors_->size(); ++item) {
    if (!all && !IsKnown(item)) continue;
    known.nearest.push_back((*neighbors_)[item]);
    known.cells.push_back(cells.NearestTo(gallery.row(static_cast<Eigen::Index>(item))));
  }
  cells.lists = CellLists(Demand(known, centroids.rows(), gallery.rows()),
                          FindItemCells(gallery.cast<float>(), centroids), epsilon, plan.length);
  return cells;
}

absl::StatusOr<double> CellTrial::ExpectedFidelity(const CellPlan& plan, double epsilon) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/false);
  const int64_t count = std::ssize(cells.lists);
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, MechanismOf(count, epsilon));
  const double nearest = mechanism.OverlapProbabilities()[1];
  const double other = (1 - nearest) / static_cast<double>(count - 1);
  const ItemNeighbors& neighbors = *neighbors_;
  std::vector<std::vector<int64_t>> answers_for(neighbors.size());  // the cells of each item
  for (size_t cell = 0; cell < cells.lists.size(); ++cell) {
    for (const int64_t row : cells.lists[cell]) {
      answers_for[static_cast<size_t>(row)].push_back(static_cast<int64_t>(cell));
    }
  }
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (IsKnown(item)) continue;
    const int64_t own =
        cells.NearestTo(trial_->split.gallery.features.row(static_cast<Eigen::Index>(item)));
    const size_t k = std::min(static_cast<size_t>(trial_->k), neighbors[item].size());
    for (size_t near = 0; near < k; ++near) {
      for (const int64_t cell : answers_for[static_cast<size_t>(neighbors[item][near])]) {
        found += cell == own ? nearest : other;
      }
      wanted += 1;
    }
  }
  return found / wanted;
}

absl::StatusOr<CellPlan> CellTrial::PlanFor(double epsilon, double share) const {
  std::optional<CellPlan> best;
  double before = 0;
  int worse = 0;
  for (const int64_t cells : kCellCounts) {
    if (cells > 2 && cells * kFewestPoints > trial_->split.anchors.features.rows()) break;
    CellPlan plan{.cells = cells, .length = LengthOf(share)};
    PM_ASSIGN_OR_RETURN(plan.expected_fidelity, ExpectedFidelity(plan, epsilon));
    // It rises with the cells, then falls.
    worse = plan.expected_fidelity > before ? 0 : worse + 1;
    before = std::max(before, plan.expected_fidelity);
    if (!best || plan.expected_fidelity > best->expected_fidelity) best = plan;
    if (worse == 2) break;
  }
  return *best;
}

absl::StatusOr<Answers> CellTrial::AskAll(const CellPlan& plan, double epsilon,
                                          const std::string& part) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/true);
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, MechanismOf(std::ssize(cells.lists), epsilon));
  const DataSplit& split = trial_->split;
  Answers answers;
  for (size_t target = 0; target < split.targets.labels.size(); ++target) {
    const RowVector features = split.targets.features.row(static_cast<Eigen::Index>(target));
    SeededBits bits(SeedOf(part, trial_->seed, target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked,
                        mechanism.Choose({cells.NearestTo(features)}, bits));
    const std::vector<int64_t>& returned = cells.lists[static_cast<size_t>(asked[0])];
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    std::vector<int64_t> found = NearestOf(features, candidates, trial_->k)[0];
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
    answers.Add(ScoreOf(found, split.gallery.labels, split.targets.labels[target],
                        trial_->nearest[target]));
  }
  return answers;
}

}  // namespace privatemail::client

#include "client/evaluation/cell_trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/evaluation/metrics.h"
#include "client/evaluation/seeded_bits.h"
#include "client/privacy/cell_mechanism.h"
#include "common/base/status_macros.h"
#include "server/cells/cell_lists.h"
#include "server/cells/demand.h"
#include "server/index/k_means.h"

namespace privatemail {
namespace {

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

using Lists = std::vector<std::vector<int64_t>>;

// Every fourth item, in no order that labels could have: splits are random.
bool IsKnown(size_t item) { return item % 4 != 0; }

std::vector<std::vector<int64_t>> NeighborsAmong(const Matrix& items) {
  const int64_t count = std::min<int64_t>(Demand::kRanks + 1, items.rows());
  std::vector<std::vector<int64_t>> neighbors = NearestOf(items, items, count);
  for (size_t item = 0; item < neighbors.size(); ++item) {
    std::vector<int64_t>& rows = neighbors[item];
    const auto self = std::find(rows.begin(), rows.end(), static_cast<int64_t>(item));
    rows.erase(self != rows.end() ? self : rows.end() - 1);  // not there among many equal ones
  }
  return neighbors;
}

KnownQueries Known(const Lists& neighbors, const std::vector<int64_t>& cells, bool all) {
  KnownQueries known;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (!all && !IsKnown(item)) continue;
    known.nearest.push_back(neighbors[item]);
    known.cells.push_back(cells[item]);
  }
  return known;
}

}  // namespace

CellTrial::CellTrial(std::shared_ptr<const Trial> trial, Centroids centroids)
    : trial_(std::move(trial)),
      centroids_(centroids),
      neighbors_(NeighborsAmong(trial_->split.gallery.features)) {}

std::shared_ptr<const CellTrial::Partition> CellTrial::PartitionInto(int64_t cells) const {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const Partition>> {
    const FloatMatrix gallery = trial_->split.gallery.features.cast<float>();
    const FloatMatrix centroids =
        centroids_ == Centroids::kOfGallery
            ? KMeans(gallery, cells, {})
            : KMeans(trial_->split.anchors.features.cast<float>(), cells, {});
    return std::make_shared<const Partition>(
        Partition{centroids.cast<double>(), NearestCentroids(gallery, centroids)});
  };
  return *partitions_.Get(cells, make);
}

double CellTrial::ExpectedFidelity(int64_t cells, double epsilon, int64_t length) const {
  const std::shared_ptr<const Partition> partition = PartitionInto(cells);
  const auto items = static_cast<int64_t>(neighbors_.size());
  const Demand demand(Known(neighbors_, partition->cells_of_items, /*all=*/false), cells, items);
  const Lists lists =
      CellLists(demand, trial_->split.gallery.features, partition->centroids, epsilon, length);
  std::vector<std::vector<bool>> answers(lists.size(), std::vector<bool>(neighbors_.size()));
  std::vector<int64_t> answered_by(neighbors_.size());  // how many cells
  for (size_t cell = 0; cell < lists.size(); ++cell) {
    for (const int64_t row : lists[cell]) {
      answers[cell][static_cast<size_t>(row)] = true;
      ++answered_by[static_cast<size_t>(row)];
    }
  }
  // Of another cell, beside 1 for the own one.
  const double other = std::exp(-epsilon);
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors_.size(); ++item) {
    if (IsKnown(item)) continue;
    const std::vector<bool>& own = answers[static_cast<size_t>(partition->cells_of_items[item])];
    const size_t k = std::min(static_cast<size_t>(trial_->k), neighbors_[item].size());
    for (size_t rank = 0; rank < k; ++rank) {
      const auto row = static_cast<size_t>(neighbors_[item][rank]);
      const double by_own = own[row] ? 1 : 0;
      found += by_own + other * (static_cast<double>(answered_by[row]) - by_own);
      wanted += 1 + other * static_cast<double>(cells - 1);
    }
  }
  return found / wanted;
}

CellPlan CellTrial::PlanFor(double epsilon, double share) const {
  const auto items = static_cast<double>(neighbors_.size());
  CellPlan best{.length = std::max(trial_->k, static_cast<int64_t>(std::llround(share * items)))};
  const Eigen::Index points = centroids_ == Centroids::kOfGallery
                                  ? trial_->split.gallery.features.rows()
                                  : trial_->split.anchors.features.rows();
  for (const int64_t cells : kCellCounts) {
    if (cells > points) break;
    const double fidelity = ExpectedFidelity(cells, epsilon, best.length);
    if (best.cells > 0 && !(fidelity > best.expected_fidelity)) continue;
    best.cells = cells;
    best.expected_fidelity = fidelity;
  }
  return best;
}

absl::StatusOr<Answers> CellTrial::AskAll(const CellPlan& plan, double epsilon,
                                          const std::string& part) const {
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create({.cells = plan.cells, .ask = 1, .focus = 1, .epsilon = epsilon}));
  const std::shared_ptr<const Partition> partition = PartitionInto(plan.cells);
  const DataSplit& split = trial_->split;
  const Demand demand(Known(neighbors_, partition->cells_of_items, /*all=*/true), plan.cells,
                      split.gallery.features.rows());
  const Lists lists =
      CellLists(demand, split.gallery.features, partition->centroids, epsilon, plan.length);
  const Lists best = NearestOf(split.targets.features, partition->centroids, 1);
  Answers answers;
  for (size_t target = 0; target < best.size(); ++target) {
    SeededBits bits(SeedOf(part, trial_->seed, target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, mechanism.Choose(best[target], bits));
    const std::vector<int64_t>& returned = lists[static_cast<size_t>(asked[0])];
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    const auto row = static_cast<Eigen::Index>(target);
    std::vector<int64_t> found =
        NearestOf(split.targets.features.row(row), candidates, trial_->k)[0];
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
    answers.Add(ScoreOf(found, split.gallery.labels, split.targets.labels[target],
                        trial_->nearest[target]));
  }
  return answers;
}

}  // namespace privatemail

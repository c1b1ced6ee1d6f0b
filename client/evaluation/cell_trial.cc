#include "client/evaluation/cell_trial.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/evaluation/anchor_cuts.h"
#include "client/evaluation/cell_filling.h"
#include "client/evaluation/cell_router.h"
#include "client/evaluation/learn_router.h"
#include "client/evaluation/metrics.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/cells/cell_lists.h"
#include "common/cells/demand.h"
#include "common/numerics/neighbors.h"
#include "common/index/find_item_cells.h"
#include "common/index/exact_index.h"
#include "common/index/k_means.h"

namespace privatemail::client {
namespace {

constexpr int64_t kCellCounts[] = {2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 80, 150, 300};

// Of a cell's, on an average: with fewer, cells move with every split, and more of them show where
// single items lie.
constexpr int64_t kFewestPoints = 5;

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

// For prototypes of a router: as many as have a few items each.
int64_t PrototypesFor(Eigen::Index items) { return std::clamp<int64_t>(items / 16, 1, 500); }

absl::StatusOr<CellLaw> LawOf(const CellPlan& plan, int64_t cells, double epsilon) {
  if (cells < 2) return absl::FailedPreconditionError("all anchors lie in one cell");
  if (plan.graded) return CellLaw::Graded(cells, epsilon);
  return CellLaw::Step({.cells = cells, .ask = plan.ask, .focus = plan.focus, .epsilon = epsilon});
}

// For each cell its rank.
std::vector<int64_t> RanksIn(const std::vector<int64_t>& ranked) {
  std::vector<int64_t> ranks(ranked.size());
  for (size_t rank = 0; rank < ranked.size(); ++rank) {
    ranks[static_cast<size_t>(ranked[rank])] = static_cast<int64_t>(rank);
  }
  return ranks;
}

}  // namespace

struct CellTrial::Cells {
  CellContents lists;  // the rows that answer for each
  Matrix centroids;    // where there is no router
  std::optional<CellRouter> router;

  // All of them, the best for the query first.
  std::vector<int64_t> Ranked(const RowVector& query) const {
    if (router) return RankedCells(*router, query);
    return RowsOf(NearestRows(query, centroids, centroids.rows())[0]);
  }
};

int64_t ListLength(double share, int64_t k, int64_t items) {
  return std::max<int64_t>(k, std::llround(share * static_cast<double>(items)));
}

CellTrial::CellTrial(std::shared_ptr<const Trial> trial, Kind kind, Matrix embedded_anchors)
    : trial_(std::move(trial)), kind_(kind), neighbors_(NeighborsOf(*trial_)) {
  const LabelledRows& anchors = trial_->split.anchors;
  if (kind_ == Kind::kOfEmbedding) clustered_ = std::move(embedded_anchors);
  if (kind_ == Kind::kOfDiscriminants) {
    clustered_ = DiscriminantRows(anchors.features, anchors.labels);
  }
}

int64_t CellTrial::LengthOf(double share) const {
  return ListLength(share, trial_->k, trial_->split.gallery.features.rows());
}

const Matrix& CellTrial::ClusteredRows() const {
  if (clustered_.size() > 0) return clustered_;
  const bool of_gallery = kind_ == Kind::kOfGallery || kind_ == Kind::kLearnt;
  return (of_gallery ? trial_->split.gallery : trial_->split.anchors).features;
}

FloatMatrix CellTrial::MakeCentroids(int64_t count) const {
  const FloatMatrix rows = ClusteredRows().cast<float>();
  if (kind_ == Kind::kBalanced) {
    return MeansOfCells(trial_->split.anchors.features, BalancedCells(rows, count), count);
  }
  FloatMatrix centroids = KMeans(rows, count, {});
  if (clustered_.size() == 0) return centroids;
  return MeansOfCells(trial_->split.anchors.features, NearestCentroids(rows, centroids), count);
}

std::shared_ptr<const FloatMatrix> CellTrial::Centroids(int64_t count) const {
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const FloatMatrix>> {
    return std::make_shared<const FloatMatrix>(MakeCentroids(count));
  };
  return *centroids_.Get(count, make);
}

CellTrial::Cells CellTrial::MakeCells(const CellPlan& plan, double epsilon, bool all) const {
  const Matrix& gallery = trial_->split.gallery.features;
  const ItemNeighbors& neighbors = *neighbors_;
  const FloatMatrix& centroids = *Centroids(plan.cells);
  Cells cells{.lists = {}, .centroids = centroids.cast<double>(), .router = {}};
  if (plan.overlap > 0) {
    cells.lists = FileUnderNearest(gallery, cells.centroids, plan.overlap);
    return cells;
  }
  std::vector<Eigen::Index> known;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (all || IsKnown(item)) known.push_back(static_cast<Eigen::Index>(item));
  }
  const Matrix queries = gallery(known, Eigen::all);
  const ItemCells lie = FindItemCells(gallery.cast<float>(), centroids);
  std::vector<std::vector<int64_t>> nearest;
  nearest.reserve(known.size());
  for (const Eigen::Index item : known) nearest.push_back(neighbors[static_cast<size_t>(item)]);
  if (kind_ == Kind::kLearnt) {
    const std::shared_ptr<const FloatMatrix> prototypes = Centroids(PrototypesFor(gallery.rows()));
    LearntCells learnt =
        LearnRouter(queries, nearest, lie, cells.centroids, *prototypes, epsilon, plan.length);
    cells.lists = std::move(learnt.lists);
    cells.router = std::move(learnt.router);
    return cells;
  }
  const Demand demand(WantedBy(queries, nearest, cells.centroids, plan.focus), centroids.rows(),
                      gallery.rows());
  cells.lists = CellLists(demand, lie, epsilon, plan.length);
  return cells;
}

absl::StatusOr<double> CellTrial::ExpectedFidelity(const CellPlan& plan, double epsilon) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/false);
  PM_ASSIGN_OR_RETURN(const CellLaw law, LawOf(plan, std::ssize(cells.lists), epsilon));
  const ItemNeighbors& neighbors = *neighbors_;
  std::vector<std::vector<int64_t>> answer_for(neighbors.size());  // the cells of each item
  for (size_t cell = 0; cell < cells.lists.size(); ++cell) {
    for (const int64_t row : cells.lists[cell]) {
      answer_for[static_cast<size_t>(row)].push_back(static_cast<int64_t>(cell));
    }
  }
  double found = 0, wanted = 0;
  for (size_t item = 0; item < neighbors.size(); ++item) {
    if (IsKnown(item)) continue;
    const std::vector<int64_t> ranks =
        RanksIn(cells.Ranked(trial_->split.gallery.features.row(static_cast<Eigen::Index>(item))));
    const size_t k = std::min(static_cast<size_t>(trial_->k), neighbors[item].size());
    for (size_t near = 0; near < k; ++near) {
      std::vector<int64_t> ranks_of_row;
      for (const int64_t cell : answer_for[static_cast<size_t>(neighbors[item][near])]) {
        ranks_of_row.push_back(ranks[static_cast<size_t>(cell)]);
      }
      found += law.AnyAsked(ranks_of_row);
      wanted += 1;
    }
  }
  return found / wanted;
}

absl::StatusOr<CellPlan> CellTrial::PlanFor(double epsilon, double share,
                                            const CellDesign& design) const {
  std::optional<CellPlan> best;
  for (const int64_t overlap : design.overlaps) {
    for (const int64_t focus : design.focuses) {
      double before = 0;
      int worse = 0;
      for (const int64_t cells : kCellCounts) {
        if (cells > 2 && cells * kFewestPoints > ClusteredRows().rows()) break;
        const int64_t ask = overlap == 0 ? 1 : CellsWithin(share, cells, overlap);
        if (ask == 0 || focus >= cells) continue;
        CellPlan plan{.cells = cells,
                      .length = LengthOf(share),
                      .overlap = overlap,
                      .ask = ask,
                      .focus = focus,
                      .graded = design.graded};
        PM_ASSIGN_OR_RETURN(plan.expected_fidelity, ExpectedFidelity(plan, epsilon));
        // It rises with the cells, then falls.
        worse = plan.expected_fidelity > before ? 0 : worse + 1;
        before = std::max(before, plan.expected_fidelity);
        if (!best || plan.expected_fidelity > best->expected_fidelity) best = plan;
        if (worse == 2) break;
      }
    }
  }
  if (best) return *best;
  return absl::FailedPreconditionError(
      absl::StrCat("too few rows for cells of which one has not more than a share of ", share));
}

absl::StatusOr<Answers> CellTrial::AskAll(const CellPlan& plan, double epsilon,
                                          const std::string& part) const {
  const Cells cells = MakeCells(plan, epsilon, /*all=*/true);
  PM_ASSIGN_OR_RETURN(const CellLaw law, LawOf(plan, std::ssize(cells.lists), epsilon));
  const DataSplit& split = trial_->split;
  Answers answers;
  for (size_t target = 0; target < split.targets.labels.size(); ++target) {
    const RowVector features = split.targets.features.row(static_cast<Eigen::Index>(target));
    SeededBits bits(SeedOf(part, trial_->seed, target));
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, law.Draw(cells.Ranked(features), bits));
    const std::vector<int64_t> returned = MergedContents(cells.lists, asked, plan.length);
    const Matrix candidates = split.gallery.features(returned, Eigen::all);
    std::vector<int64_t> found = NearestOf(features, candidates, trial_->k)[0];
    for (int64_t& place : found) place = returned[static_cast<size_t>(place)];
    answers.Add(ScoreOf(found, split.gallery.labels, split.targets.labels[target],
                        trial_->nearest[target]));
  }
  return answers;
}

}  // namespace privatemail::client

#include "client/planning/forecast.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/privacy/cell_mechanism.h"
#include "client/release/published_collection.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/cells/cell_lists.h"
#include "common/cells/demand.h"
#include "common/numerics/neighbors.h"

namespace privatemail {
namespace {

constexpr int64_t kFewestAnchors = 20;

// Fitted, with what tests/benchmarks/plan_coverage.cc prints, to CIFAR-100 features (MobileNetV2,
// 128 dimensions) of classes 0 to 49 of its order: 400 to 1,000 anchors, a gallery of 3,500, 8 to
// 67 cells, epsilon .5 to 8, 1 to 10 % of the items, four splits. Recall's growth also to blurred
// pixels of Omniglot's characters, of which stand-ins have 1.4 to 3.6 each.

// Fidelity: towards what known queries find, and how wide that makes the interval.
constexpr double kGapShare = .65;
constexpr double kGapWidth = .6;
constexpr double kFidelityWidth = .06;

// Recall: the exponent by which lists are longer than their share.
struct Growth {
  double base;
  double per_log_cells;
  double per_log_epsilon;

  double Exponent(const CellChoice& choice) const {
    return std::clamp(base + per_log_cells * std::log(static_cast<double>(choice.cells)) +
                          per_log_epsilon * std::log(choice.epsilon),
                      0., 1.);
  }
};
constexpr Growth kOwnGrowth = {.base = .58, .per_log_cells = .164, .per_log_epsilon = -.079};
constexpr Growth kOtherGrowth = {.base = .38, .per_log_cells = .087, .per_log_epsilon = -.155};
constexpr double kRecallWidth = .095;
constexpr double kThinClass = 2;  // items of a class with which the width is twice that

// Of what askers find.
struct Sample {
  double count = 0;
  double sum = 0;
  double squares = 0;

  void Add(double value) {
    count += 1;
    sum += value;
    squares += value * value;
  }
  void Add(const Sample& more) {
    count += more.count;
    sum += more.sum;
    squares += more.squares;
  }
  double mean() const { return sum / count; }
  double standard_error() const {
    return std::sqrt(std::max(0., squares / count - mean() * mean()) / count);
  }
};

struct Found {
  Sample held_out_fidelity;
  Sample known_fidelity;
  Sample recall;

  void Add(const Found& more) {
    held_out_fidelity.Add(more.held_out_fidelity);
    known_fidelity.Add(more.known_fidelity);
    recall.Add(more.recall);
  }
};

// Of one number of items that answer: how long the lists of a stand-in are instead.
struct Lengths {
  double fidelity = 0;  // a part of an item finds that part of what it would
  int64_t own = 0;      // recall: of the asker's own cell, and of another
  int64_t other = 0;
};

// Where each item of a stand-in stands in the list of each cell.
using Places = std::vector<std::vector<int32_t>>;

Places PlacesInLists(const StandIn& stand_in, const ItemCells& anchors_lie, int64_t cells,
                     double epsilon, double ranks_per_fold) {
  ItemCells lie;
  for (const int64_t anchor : stand_in.items) {
    lie.cells.push_back(anchors_lie.cells[static_cast<size_t>(anchor)]);
    lie.squared_distances.push_back(anchors_lie.squared_distances[static_cast<size_t>(anchor)]);
  }
  const auto items = std::ssize(stand_in.items);
  const Demand demand({.nearest = stand_in.nearest, .cells = lie.cells}, cells, items,
                      ranks_per_fold);
  Places places;
  for (int64_t cell = 0; cell < cells; ++cell) {
    std::vector<int32_t>& of_cell = places.emplace_back(stand_in.items.size());
    int32_t place = 0;
    for (const int64_t item : CellList(demand, lie, cell, ListedEpsilon(epsilon), items)) {
      of_cell[static_cast<size_t>(item)] = place++;
    }
  }
  return places;
}

// The share of the k items nearest to an asker that the first `length` of a list have. Neither need
// be whole.
double FidelityIn(const std::vector<int32_t>& places, const Asker& asker, double k, double length) {
  double found = 0;
  for (size_t rank = 0; rank < asker.items.size() && static_cast<double>(rank) < k; ++rank) {
    const double place = places[static_cast<size_t>(asker.items[rank])];
    found += std::min(1., k - static_cast<double>(rank)) * std::clamp(length - place, 0., 1.);
  }
  return found / std::min(k, static_cast<double>(asker.items.size()));
}

// What a stand-in's askers find on an average over the cells that may be asked for.
class Asking {
 public:
  // own: the probability that the own cell is asked for.
  Asking(const StandIn& stand_in, const std::vector<int64_t>& cell_of_anchor,
         const std::vector<int32_t>& label_of_anchor, const Places& places, double own)
      : cell_of_anchor_(cell_of_anchor), places_(places), own_(own) {
    for (const int64_t anchor : stand_in.items) {
      labels_.push_back(label_of_anchor[static_cast<size_t>(anchor)]);
    }
  }

  double Fidelity(const Asker& asker, double k, double length) const {
    return Mean(asker, [&](const std::vector<int32_t>& places, bool /*own*/) {
      return FidelityIn(places, asker, k, length);
    });
  }

  double Recall(const Asker& asker, int32_t label, int64_t k, const Lengths& lengths) const {
    return Mean(asker, [&](const std::vector<int32_t>& places, bool own) {
      return Hits(places, asker, label, k, own ? lengths.own : lengths.other) ? 1. : 0.;
    });
  }

 private:
  template <typename InList>
  double Mean(const Asker& asker, const InList& in_list) const {
    const auto own = static_cast<size_t>(cell_of_anchor_[static_cast<size_t>(asker.anchor)]);
    const double other = (1 - own_) / static_cast<double>(places_.size() - 1);
    double mean = 0;
    for (size_t cell = 0; cell < places_.size(); ++cell) {
      mean += (cell == own ? own_ : other) * in_list(places_[cell], cell == own);
    }
    return mean;
  }

  // Whether one of the k nearest of the first `length` of a list is of this class.
  bool Hits(const std::vector<int32_t>& places, const Asker& asker, int32_t label, int64_t k,
            int64_t length) const {
    int64_t seen = 0;
    for (const int32_t item : asker.items) {
      if (places[static_cast<size_t>(item)] >= length) continue;
      if (labels_[static_cast<size_t>(item)] == label) return true;
      if (++seen == k) return false;
    }
    return false;
  }

  const std::vector<int64_t>& cell_of_anchor_;
  const Places& places_;
  double own_;
  std::vector<int32_t> labels_;  // of the items
};

// What is asked of every stand-in.
struct Question {
  const ItemCells& lie;                // of the anchors
  const std::vector<int32_t>& labels;  // of the anchors
  int64_t items;                       // of the gallery
  CellChoice choice;
  double own;  // probability that the own cell is asked for
  int64_t k;
  const std::vector<int64_t>& answered;
};

std::vector<Found> FoundIn(const StandIn& stand_in, const Question& question) {
  const auto size = static_cast<double>(stand_in.items.size());
  const double ratio = static_cast<double>(question.items) / size;
  const double scale = 1 / std::sqrt(ratio);
  const CellChoice& choice = question.choice;
  const Places places = PlacesInLists(stand_in, question.lie, choice.cells, choice.epsilon,
                                      Demand::kRanksPerFold * scale);
  const Asking asking(stand_in, question.lie.cells, question.labels, places, question.own);
  const double k = std::max(1., static_cast<double>(question.k) * scale);
  std::vector<Found> found;
  for (const int64_t answered : question.answered) {
    const double share = static_cast<double>(answered) / static_cast<double>(question.items);
    const auto longer = [&](const Growth& growth) {
      const double length = share * size * std::pow(ratio, growth.Exponent(choice));
      return std::max<int64_t>(1, std::llround(length));
    };
    const Lengths lengths{
        .fidelity = share * size, .own = longer(kOwnGrowth), .other = longer(kOtherGrowth)};
    Found& one = found.emplace_back();
    for (const Asker& asker : stand_in.held_out) {
      const int32_t label = question.labels[static_cast<size_t>(asker.anchor)];
      one.held_out_fidelity.Add(asking.Fidelity(asker, k, lengths.fidelity));
      one.recall.Add(asking.Recall(asker, label, question.k, lengths));
    }
    for (const Asker& asker : stand_in.known) {
      one.known_fidelity.Add(asking.Fidelity(asker, k, lengths.fidelity));
    }
  }
  return found;
}

Estimate Between(double value, double half_width) {
  value = std::clamp(value, 0., 1.);
  return {.value = value,
          .low = std::max(value - half_width, 0.),
          .high = std::min(value + half_width, 1.)};
}

double Spread(double share) { return std::sqrt(std::max(0., share * (1 - share))); }

Estimate FidelityFrom(const Found& found) {
  const double held_out = found.held_out_fidelity.mean();
  const double gap = std::max(0., found.known_fidelity.mean() - held_out);
  return Between(held_out + kGapShare * gap,
                 std::hypot(2 * found.held_out_fidelity.standard_error(), kGapWidth * gap,
                            kFidelityWidth * Spread(held_out)));
}

// items_per_class: of a stand-in.
Estimate RecallFrom(const Found& found, double items_per_class) {
  const double mean = found.recall.mean();
  const double width = kRecallWidth * (1 + kThinClass / items_per_class);
  return Between(mean, std::hypot(2 * found.recall.standard_error(), width * Spread(mean)));
}

ItemCells CellsOfAnchors(const Matrix& anchors, const Matrix& centroids) {
  ItemCells lie;
  for (const std::vector<Neighbor>& nearest : NearestRows(anchors, centroids, 1)) {
    lie.cells.push_back(nearest.front().row);
    lie.squared_distances.push_back(static_cast<float>(nearest.front().squared_distance));
  }
  return lie;
}

}  // namespace

absl::StatusOr<Forecaster> Forecaster::Create(const PublicParameters& parameters,
                                              const Anchors& anchors, int64_t items) {
  if (parameters.cell_partitions.empty()) {
    return absl::FailedPreconditionError(
        "the collection has no cells: its operator has made it without --cells");
  }
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, anchors));
  if (anchors.features.rows() < kFewestAnchors) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing can be foreseen from fewer than ", kFewestAnchors,
                     " anchors: the collection has ", anchors.features.rows()));
  }
  if (items < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("items of the gallery must be at least 1, but is ", items));
  }
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, UnitRows("anchors", anchors.features));
  Forecaster made;
  made.items_ = items;
  made.labels_ = anchors.labels;
  for (const CellPartition& partition : parameters.cell_partitions) {
    made.cells_.push_back(partition.cells);
    made.lie_.push_back(CellsOfAnchors(unit_anchors, CellCentroids(partition, unit_anchors)));
  }
  const auto size = static_cast<double>(std::min(unit_anchors.rows(), kMostStandIns));
  const double scale = std::sqrt(size / static_cast<double>(items));
  made.stand_ins_ =
      MakeStandIns(unit_anchors,
                   std::max<int64_t>(1, std::llround(scale * static_cast<double>(Demand::kRanks))));
  return made;
}

absl::StatusOr<std::vector<Forecast>> Forecaster::Foresee(
    const CellAsk& ask, const std::vector<int64_t>& answered) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", ask.partition, 0, std::ssize(cells_) - 1));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", ask.k, 1, items_));
  for (const int64_t items : answered) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("items", items, 1, items_));
  }
  const auto partition = static_cast<size_t>(ask.partition);
  const CellChoice choice{.cells = cells_[partition], .ask = 1, .focus = 1, .epsilon = ask.epsilon};
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism, CellMechanism::Create(choice));
  const Question question{.lie = lie_[partition],
                          .labels = labels_,
                          .items = items_,
                          .choice = choice,
                          .own = mechanism.OverlapProbabilities()[1],
                          .k = ask.k,
                          .answered = answered};
  std::vector<std::vector<Found>> found(stand_ins_.size());
  ParallelFor(static_cast<int>(stand_ins_.size()), [&](int i) {
    found[static_cast<size_t>(i)] = FoundIn(stand_ins_[static_cast<size_t>(i)], question);
  });
  const std::set<int32_t> classes(labels_.begin(), labels_.end());
  const double items_per_class =
      static_cast<double>(stand_ins_.front().items.size()) / static_cast<double>(classes.size());
  std::vector<Forecast> forecasts;
  for (size_t one = 0; one < answered.size(); ++one) {
    Found all;
    for (const std::vector<Found>& by_stand_in : found) all.Add(by_stand_in[one]);
    forecasts.push_back(
        {.fidelity = FidelityFrom(all), .recall = RecallFrom(all, items_per_class)});
  }
  return forecasts;
}

}  // namespace privatemail

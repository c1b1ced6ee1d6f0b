#include "client/planning/forecast.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/schemes/published_collection.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/base/validate.h"
#include "common/items/item_code.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

constexpr int64_t kFewestAnchors = 20;

// Fitted with tests/benchmarks/plan_coverage.cc to CIFAR-100 (MobileNetV2, 128 dimensions, classes
// 0 to 49) and Omniglot (blurred pixels, characters 0 to 120): 194 to 1,500 anchors, galleries of
// 1,210 to 3,500, 4 to 100 cells, epsilon .5 to 8, 1 to 10 % of the items; codes with 650 to 1,500
// anchors.

// Fidelity: so much of the way to what known queries find, where a server knows many times as many
// as a stand-in, and nothing of it where it knows as many.
constexpr double kGapShare = .43;
// Recall: of so many of the first that come back the classes are looked at.
constexpr int64_t kAlike = 3;
// They take the room of kAlike n / G items of the gallery, of which k are meant. Lists are longer
// by a power of that quotient: of the cell's own, and of the others, from which at a small epsilon
// come what everybody wants, scattered. Where k take more room, lists are shorter by a power of it.
constexpr double kOwnGrowth = .8;
double OtherGrowth(double epsilon) { return std::clamp(.7 - .2 * std::log(epsilon), .2, 1.); }
constexpr double kShrinkage = .6;

// Codes. The codebook is trained on the anchors, of which it loses less than of items: the squared
// error of items is larger by so much times the centroids per anchor.
constexpr double kUnseenError = 8;
// And what of it misleads is larger where items lie nearer together than the anchors that stand in
// for them: by so much of a power of n / G.
constexpr double kErrorGrowth = .06;

constexpr double kErrors = 2;  // standard errors
constexpr double kGapWidth = .4;
constexpr double kFidelityWidth = .06;
constexpr double kRecallWidth = .07;
constexpr double kCodeWidth = .06;  // of either, where a product code ranks
constexpr double kThinList = 2;     // items in a stand-in's list with which the width is twice that

// The range in which the coverage of intervals was measured, slightly extended.
constexpr double kFewestPerAnchor = 1.5, kMostPerAnchor = 10;  // items
constexpr double kLeastShare = .008, kMostShare = .15;         // of items, that answer

// Probability that one of the k first has the class, if each has it with a probability that is
// Beta-distributed over the places where queries are, and of which likeness tells mean and variance
// (the beta-binomial law).
double AnyAlike(const Likeness& likeness, int64_t k) {
  const double p = likeness.one.mean();
  if (p <= 0 || p >= 1) return p;
  const double covariance = likeness.both.mean() - p * p;
  // Of two of them: 0, if classes do not depend on places, to 1.
  const double correlation = std::clamp(covariance / (p * (1 - p)), 0., 1 - 1e-9);
  double none = 1;
  for (int64_t i = 0; i < k; ++i) {
    const double others = static_cast<double>(i) * correlation;
    none *= ((1 - p) * (1 - correlation) + others) / (1 - correlation + others);
  }
  return 1 - none;
}

struct Asked {
  double own;         // probability that the own cell is asked for
  int64_t k;          // of the gallery
  double length;      // of a stand-in's list, before it is made longer or shorter
  double ratio;       // items of the gallery for one of a stand-in
  double code_width;  // what the code adds to intervals
};

struct Told {
  double fidelity;
  double gap;  // from held-out to known
  double recall;
};

Told TellFrom(const Found& found, const Asked& asked) {
  const double gap_share = kGapShare * std::max(0., 1 - 1 / asked.ratio);
  const double held_out = found.held_out_fidelity.mean();
  const double gap = std::max(0., found.known_fidelity.mean() - held_out);
  return {.fidelity = held_out + gap_share * gap,
          .gap = gap,
          .recall = asked.own * AnyAlike(found.own, asked.k) +
                    (1 - asked.own) * AnyAlike(found.other, asked.k)};
}

// By the jackknife: each value is told without one of the stand-ins.
double StandardError(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  return std::sqrt((count - 1) / count * squares);
}

Estimate Between(double value, double half_width) {
  value = std::clamp(value, 0., 1.);
  return {.value = value,
          .low = std::max(value - half_width, 0.),
          .high = std::min(value + half_width, 1.)};
}

double Spread(double share) { return std::sqrt(std::max(0., share * (1 - share))); }

Forecast ForecastFrom(const std::vector<Found>& by_stand_in, const Asked& asked) {
  Found all;
  for (const Found& found : by_stand_in) all.Add(found);
  const Told told = TellFrom(all, asked);
  std::vector<double> fidelities, recalls;
  for (const Found& found : by_stand_in) {
    Found others = all;
    others.Add(found, -1);
    const Told without = TellFrom(others, asked);
    fidelities.push_back(without.fidelity);
    recalls.push_back(without.recall);
  }
  const double thin = 1 + kThinList / asked.length;
  const double unseen = kErrors / all.held_out_fidelity.count;  // what none of so many met
  const auto estimate = [&](double value, const std::vector<double>& without, double rules) {
    const double chance = std::hypot(kErrors * StandardError(without), unseen);
    return Between(value, std::hypot(chance, rules, asked.code_width * Spread(value)));
  };
  return {.fidelity =
              estimate(told.fidelity, fidelities,
                       std::hypot(kGapWidth * told.gap, kFidelityWidth * Spread(told.fidelity))),
          .recall = estimate(told.recall, recalls, kRecallWidth * thin * Spread(told.recall))};
}

ItemCells CellsOfAnchors(const Matrix& anchors, const Matrix& centroids) {
  ItemCells lie;
  for (const std::vector<Neighbor>& nearest : NearestRows(anchors, centroids, 1)) {
    lie.cells.push_back(nearest.front().row);
    lie.squared_distances.push_back(static_cast<float>(nearest.front().squared_distance));
  }
  return lie;
}

// How much larger the error of items is than that of the anchors, as far as ranks tell.
double ErrorGrowth(const PublicParameters& parameters, double items_per_stand_in) {
  const double denser = std::pow(std::max(1., items_per_stand_in), kErrorGrowth);
  if (!parameters.cell_codebook) return denser;
  return denser *
         std::sqrt(1 + kUnseenError *
                           static_cast<double>(parameters.cell_codebook->centroids_per_part()) /
                           static_cast<double>(parameters.anchor_count));
}

absl::StatusOr<Matrix> Decoded(const PublicParameters& parameters, const Matrix& unit_anchors,
                               double error_growth) {
  std::string codes;
  for (const auto& anchor : unit_anchors.rowwise()) {
    AppendItemCode(parameters, anchor.cast<float>(), &codes);
  }
  PM_ASSIGN_OR_RETURN(const FloatMatrix decoded, DecodeItemCodes(parameters, codes));
  return Matrix(unit_anchors + error_growth * (decoded.cast<double>() - unit_anchors));
}

absl::Status CheckForeseeable(const PublicParameters& parameters, const Anchors& anchors,
                              int64_t items) {
  if (parameters.cell_partitions.empty()) {
    return absl::FailedPreconditionError(
        "the collection has no cells: it was created without --cells");
  }
  if (parameters.SendsCoordinates()) {
    return absl::FailedPreconditionError(
        "recall is not predicted where cell_code is none: items are ranked by coordinates, which "
        "tell "
        "little but the class");
  }
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, anchors));
  if (anchors.features.rows() < kFewestAnchors) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing can be predicted from fewer than ", kFewestAnchors,
                     " anchors: the collection has ", anchors.features.rows()));
  }
  if (items >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items of the gallery must be at least 1, but is ", items));
}

}  // namespace

absl::StatusOr<Forecaster> Forecaster::Create(const PublicParameters& parameters,
                                              const Anchors& anchors, int64_t items) {
  PM_RETURN_IF_ERROR(CheckForeseeable(parameters, anchors, items));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, UnitRows("anchors", anchors.features));
  Forecaster made;
  made.items_ = items;
  made.labels_ = anchors.labels;
  made.code_width_ = parameters.cell_codebook ? kCodeWidth : 0;
  for (const CellPartition& partition : parameters.cell_partitions) {
    made.cells_.push_back(partition.cells);
    made.lie_.push_back(CellsOfAnchors(unit_anchors, CellCentroids(partition, unit_anchors)));
  }
  const int64_t size = std::min(unit_anchors.rows(), kMostStandIns);
  const double ratio = static_cast<double>(items) / static_cast<double>(size);
  PM_ASSIGN_OR_RETURN(const Matrix decoded,
                      Decoded(parameters, unit_anchors, ErrorGrowth(parameters, ratio)));
  made.stand_ins_ =
      MakeStandIns(unit_anchors, decoded, std::max<int64_t>(1, Demand::kRanks * size / items));
  return made;
}

absl::Status Forecaster::CheckAsk(const CellAsk& ask, const std::vector<int64_t>& answered) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", ask.partition, 0, std::ssize(cells_) - 1));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", ask.k, 1, items_));
  for (const int64_t items : answered) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween("items", items, 1, items_));
  }
  return absl::OkStatus();
}

std::optional<std::string> Forecaster::WhyUnmeasured(int64_t answered) const {
  const auto items = static_cast<double>(items_);
  const double per_anchor = items / static_cast<double>(labels_.size());
  const double share = static_cast<double>(answered) / items;
  if (per_anchor >= kFewestPerAnchor && per_anchor <= kMostPerAnchor && share >= kLeastShare &&
      share <= kMostShare) {
    return std::nullopt;
  }
  return absl::StrFormat(
      "how often intervals hold is measured with %g to %g items for each anchor, of which %g %% "
      "to %g %% answer; here there are %.3g, of which %.3g %% answer",
      kFewestPerAnchor, kMostPerAnchor, 100 * kLeastShare, 100 * kMostShare, per_anchor,
      100 * share);
}

double Forecaster::ItemsPerStandIn() const {
  return static_cast<double>(items_) / static_cast<double>(stand_ins_.front().items.size());
}

StandInAsk Forecaster::InSmall(const CellAsk& ask, double own,
                               const std::vector<int64_t>& answered) const {
  const auto partition = static_cast<size_t>(ask.partition);
  const auto k = static_cast<double>(ask.k);
  const double ratio = ItemsPerStandIn();
  StandInAsk small{.lie = lie_[partition],
                   .labels = labels_,
                   .cells = cells_[partition],
                   .epsilon = ask.epsilon,
                   .own = own,
                   .ranks_per_fold = Demand::kRanksPerFold / ratio,
                   .k = std::max(1., k / std::sqrt(ratio)),
                   .alike = std::min(kAlike, ask.k),
                   .lengths = {}};
  const double room = static_cast<double>(small.alike) * ratio / k;
  for (const int64_t items : answered) {
    const double length = static_cast<double>(items) / ratio;
    const auto scaled = [&](double growth) {
      return std::max<int64_t>(
          1, std::llround(length * std::pow(room, room < 1 ? kShrinkage : growth)));
    };
    small.lengths.push_back(
        {.fidelity = length, .own = scaled(kOwnGrowth), .other = scaled(OtherGrowth(ask.epsilon))});
  }
  return small;
}

absl::StatusOr<std::vector<Forecast>> Forecaster::Foresee(
    const CellAsk& ask, const std::vector<int64_t>& answered) const {
  PM_RETURN_IF_ERROR(CheckAsk(ask, answered));
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism,
                      CellMechanism::Create({.cells = cells_[static_cast<size_t>(ask.partition)],
                                             .ask = 1,
                                             .focus = 1,
                                             .epsilon = ask.epsilon}));
  const double own = mechanism.OverlapProbabilities()[1];
  const StandInAsk small = InSmall(ask, own, answered);
  std::vector<std::vector<Found>> found(stand_ins_.size());
  ParallelFor(static_cast<int>(stand_ins_.size()), [&](int i) {
    found[static_cast<size_t>(i)] = AskStandIn(stand_ins_[static_cast<size_t>(i)], small);
  });
  std::vector<Forecast> forecasts;
  for (size_t one = 0; one < answered.size(); ++one) {
    std::vector<Found> of_one;
    of_one.reserve(found.size());
    for (const std::vector<Found>& by_stand_in : found) of_one.push_back(by_stand_in[one]);
    forecasts.push_back(ForecastFrom(of_one, {.own = own,
                                              .k = std::min(ask.k, answered[one]),
                                              .length = small.lengths[one].fidelity,
                                              .ratio = ItemsPerStandIn(),
                                              .code_width = code_width_}));
  }
  return forecasts;
}

}  // namespace privatemail::client

#include "client/planning/query_plan.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_checks.h"
#include "common/items/item_code.h"

namespace privatemail::client {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr double kCertain = 700;  // an epsilon at which no other cell is drawn

// Tags and lengths of labels, codes and version (at most 10 bytes), and gRPC's frame of 5.
constexpr int64_t kMessageBytes = 1 << 16, kRestOfMessage = 2 * (1 + 5) + (1 + 10) + 5;

int64_t ItemBytes(const PublicParameters& parameters, int64_t id_bytes) {
  size_t label =
      parameters.HasClasses() ? 0 : CodedOutputStream::VarintSize32SignExtended(kNoLabel);
  for (const int32_t one : parameters.slot_labels) {
    label = std::max(label, CodedOutputStream::VarintSize32SignExtended(one));
  }
  const size_t length = CodedOutputStream::VarintSize32(static_cast<uint32_t>(id_bytes));
  return 1 + id_bytes + static_cast<int64_t>(length + label) + ItemCodeBytes(parameters);
}

// `second` with this weight. Both come from the same queries, so errors may add up.
MeasuredMean Mix(const MeasuredMean& first, const MeasuredMean& second, double weight) {
  return {(1 - weight) * first.value + weight * second.value,
          (1 - weight) * first.standard_error + weight * second.standard_error};
}

Estimate ToEstimate(const MeasuredMean& mean) {
  constexpr double kNormal = 1.96, kRounding = .005;
  // Three times the variance of the measured mean: its own, and that of half as many new queries.
  const double half = kNormal * std::sqrt(3.) * mean.standard_error + kRounding;
  return {mean.value, std::max(0., mean.value - half), std::min(1., mean.value + half)};
}

bool Fulfils(const PlanWish& wish, const Prediction& prediction) {
  return (!wish.fidelity || prediction.fidelity.value >= *wish.fidelity) &&
         (!wish.recall || prediction.recall.value >= *wish.recall);
}

bool IsBetter(const PlanWish& wish, const QueryPlan& one, const QueryPlan& other) {
  const auto worth = [&](const QueryPlan& plan) {
    return wish.recall && !wish.fidelity ? plan.prediction.recall.value
                                         : plan.prediction.fidelity.value;
  };
  if (one.fulfils != other.fulfils) return one.fulfils;
  const bool wished = wish.fidelity.has_value() || wish.recall.has_value();
  if (one.fulfils && wished && one.items != other.items) return one.items < other.items;
  return worth(one) > worth(other);
}

absl::Status CheckWish(const PlanWish& wish) {
  for (const auto& [field, share] :
       {std::pair{"fidelity", wish.fidelity}, {"recall", wish.recall}}) {
    if (share.has_value()) PM_RETURN_IF_ERROR(CheckOpenUnitInterval(field, *share));
  }
  return CheckFinitePositive("epsilon", wish.epsilon);
}

// The measured numbers of items that are allowed, and the largest allowed between them.
absl::StatusOr<std::vector<int64_t>> Candidates(const PublicParameters& parameters,
                                                const CellQuality& quality, int64_t gallery,
                                                const PlanWish& wish) {
  const int64_t within = ItemsWithin(parameters, wish.max_bytes, wish.id_bytes);
  if (within < quality.items.front()) {
    return InvalidField(
        "max_bytes", absl::StrFormat("must be at least %d, which %d items take, but is %d",
                                     AnswerBytes(parameters, quality.items.front(), wish.id_bytes),
                                     quality.items.front(), wish.max_bytes));
  }
  if (gallery <= quality.items.front()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the gallery has %d items left of those that its quality was measured with: "
        "a build measures again",
        gallery));
  }
  const int64_t most = std::min({within, gallery - 1, quality.items.back()});
  std::vector<int64_t> candidates;
  for (const int64_t items : quality.items) {
    if (items < most) candidates.push_back(items);
  }
  candidates.push_back(most);
  return candidates;
}

}  // namespace

int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes) {
  const int64_t of_items = items * ItemBytes(parameters, id_bytes);
  return of_items + (of_items / kMessageBytes + 1) * kRestOfMessage;
}

int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes) {
  int64_t items = 0, more = bytes / ItemBytes(parameters, id_bytes) + 1;  // which have no room
  while (items + 1 < more) {
    const int64_t between = items + (more - items) / 2;
    (AnswerBytes(parameters, between, id_bytes) <= bytes ? items : more) = between;
  }
  return items;
}

Prediction Predict(const CellQuality& quality, const CellCost& cost, int64_t cells, int64_t items) {
  const PartitionQuality& partition = quality.partitions[static_cast<size_t>(cost.partition)];
  const std::vector<int64_t>& counts = quality.items;
  const auto closer = [&](double a, double b) {
    return std::abs(std::log(a / cost.epsilon)) < std::abs(std::log(b / cost.epsilon));
  };
  const auto nearest = std::min_element(quality.epsilons.begin(), quality.epsilons.end(), closer);
  const auto epsilon = static_cast<size_t>(nearest - quality.epsilons.begin());
  const auto after = std::upper_bound(counts.begin() + 1, counts.end() - 1, items);
  const auto upper = static_cast<size_t>(after - counts.begin());
  const double along =
      std::log(static_cast<double>(items) / static_cast<double>(counts[upper - 1])) /
      std::log(static_cast<double>(counts[upper]) / static_cast<double>(counts[upper - 1]));
  const double own = 1 / (1 + static_cast<double>(cells - 1) * std::exp(-cost.epsilon));
  const auto mean = [&](MeasuredMean MeasuredQuality::*kind) {
    const auto at = [&](const std::vector<MeasuredQuality>& means, size_t count) {
      return means[epsilon * counts.size() + count].*kind;
    };
    const auto mixed = [&](size_t count) {
      return Mix(at(partition.other, count), at(partition.own, count), own);
    };
    return ToEstimate(Mix(mixed(upper - 1), mixed(upper), std::clamp(along, 0., 1.)));
  };
  return {.fidelity = mean(&MeasuredQuality::fidelity), .recall = mean(&MeasuredQuality::recall)};
}

int64_t DefaultItems(const CellQuality& quality, const CellCost& cost, int64_t cells) {
  constexpr double kClose = .05;
  const auto fidelity = [&](int64_t items) {
    return Predict(quality, cost, cells, items).fidelity.value;
  };
  const double most = fidelity(quality.items.back());
  return *std::find_if(quality.items.begin(), quality.items.end(),
                       [&](int64_t items) { return fidelity(items) >= most - kClose; });
}

absl::StatusOr<QueryPlan> MakePlan(const PublicParameters& parameters, const CellQuality& quality,
                                   int64_t gallery, const PlanWish& wish) {
  PM_RETURN_IF_ERROR(CheckWish(wish));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> candidates,
                      Candidates(parameters, quality, gallery, wish));
  std::optional<QueryPlan> best;
  for (size_t partition = 0; partition < quality.partitions.size(); ++partition) {
    const CellCost cost{.partition = static_cast<int64_t>(partition), .epsilon = wish.epsilon};
    const CellCost certain{.partition = cost.partition, .epsilon = kCertain};
    const int64_t cells = parameters.cell_partitions[partition].cells;
    PM_ASSIGN_OR_RETURN(
        const CellMechanism mechanism,
        CellMechanism::Create(
            {.cells = cells, .ask = cost.ask, .focus = cost.focus, .epsilon = cost.epsilon}));
    for (const int64_t items : candidates) {
      QueryPlan plan{.cost = cost,
                     .cells = cells,
                     .items = items,
                     .prediction = Predict(quality, cost, cells, items),
                     .own_fidelity = Predict(quality, certain, cells, items).fidelity.value,
                     .bytes_down = AnswerBytes(parameters, items, wish.id_bytes),
                     .guarantee = mechanism.guarantee()};
      plan.fulfils = Fulfils(wish, plan.prediction);
      if (!best || IsBetter(wish, plan, *best)) best = plan;
    }
  }
  return *best;
}

std::string WhyNot(const QueryPlan& plan, double share, double wished) {
  if (plan.own_fidelity < wished) {
    return absl::StrFormat(
        "no ceiling of privacy: if the own cell were drawn for certain, its %d items as they are "
        "encoded would have fidelity %.2f; more bytes or another cell_code may have more",
        plan.items, plan.own_fidelity);
  }
  const double epsilon = plan.cost.epsilon, odds = wished / (1 - wished);
  return absl::StrFormat(
      "ceiling: of a share f = %.3g of the items, a choice at epsilon %g has the right cell with "
      "f e^epsilon / (1 + f (e^epsilon - 1)) = %.3f at most; for %g it takes epsilon %.3g with "
      "this share, or a share of %.3g with this epsilon; it is a mean over cells that are equally "
      "wanted, and items that many queries want may come back a little more often",
      share, epsilon, CellCeiling(epsilon, share), wished,
      std::max(0., std::log(odds * (1 - share) / share)), CellCeiling(-epsilon, wished));
}

}  // namespace privatemail::client

#include "client/planning/query_plan.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_code.h"

namespace privatemail::client {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr int64_t kMessageBytes = 1 << 16;
constexpr int64_t kVersionBytes = 1 + 10;  // tag and value: at most

// Tags and lengths of labels and codes, and the versions: at most, and with gRPC's frame of 5
// bytes.
int64_t RestOfMessage(const PublicParameters& parameters) {
  return int64_t{2} * (1 + 5) + (parameters.SendsCoordinates() ? 2 : 1) * kVersionBytes + 5;
}

int64_t LabelBytes(const PublicParameters& parameters) {
  size_t most = 0;
  for (const int32_t label : parameters.slot_labels) {
    most = std::max(most, CodedOutputStream::VarintSize32SignExtended(label));
  }
  return static_cast<int64_t>(most);
}

int64_t ItemBytes(const PublicParameters& parameters, int64_t id_bytes) {
  const auto length =
      static_cast<int64_t>(CodedOutputStream::VarintSize32(static_cast<uint32_t>(id_bytes)));
  return 1 + length + id_bytes + LabelBytes(parameters) + ItemCodeBytes(parameters);
}

absl::Status CheckShare(absl::string_view field, const std::optional<double>& share) {
  return share.has_value() ? CheckOpenUnitInterval(field, *share) : absl::OkStatus();
}

// As many as come in question, ascending: as few as there are matches wanted, up to all that fit.
absl::StatusOr<std::vector<int64_t>> Ladder(const PublicParameters& parameters,
                                            const PlanWish& wish, int64_t items) {
  const int64_t most = std::min(ItemsWithin(parameters, wish.max_bytes, wish.id_bytes), items);
  if (most < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("max_bytes must be at least %d, which one item takes, but is %d",
                        AnswerBytes(parameters, 1, wish.id_bytes), wish.max_bytes));
  }
  std::vector<int64_t> ladder;
  for (int64_t step = wish.k; step < most; step = std::max(step + 1, step + step / 2)) {
    ladder.push_back(step);
  }
  ladder.push_back(most);
  return ladder;
}

bool Fulfils(const PlanWish& wish, const Forecast& forecast) {
  return (!wish.fidelity || forecast.fidelity.value >= *wish.fidelity) &&
         (!wish.recall || forecast.recall.value >= *wish.recall);
}

double Worth(const PlanWish& wish, const Forecast& forecast) {
  return wish.recall && !wish.fidelity ? forecast.recall.value : forecast.fidelity.value;
}

bool Better(const PlanWish& wish, const QueryPlan& one, const QueryPlan& other) {
  if (one.fulfils != other.fulfils) return one.fulfils;
  const bool wished = wish.fidelity.has_value() || wish.recall.has_value();
  if (one.fulfils && wished && one.items != other.items) return one.items < other.items;
  return Worth(wish, one.forecast) > Worth(wish, other.forecast);
}

absl::Status CheckWish(const PlanWish& wish, int64_t items) {
  PM_RETURN_IF_ERROR(CheckShare("fidelity", wish.fidelity));
  PM_RETURN_IF_ERROR(CheckShare("recall", wish.recall));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("id_bytes", wish.id_bytes, 1, 1 << 16));
  return CheckIntegerBetween("k", wish.k, 1, items);
}

absl::StatusOr<QueryPlan> BestOf(const Forecaster& forecaster, const PlanWish& wish,
                                 const std::vector<int64_t>& ladder) {
  std::optional<QueryPlan> best;
  for (size_t partition = 0; partition < forecaster.cells().size(); ++partition) {
    const CellCost cost{.partition = static_cast<int64_t>(partition), .epsilon = wish.epsilon};
    PM_ASSIGN_OR_RETURN(
        const std::vector<Forecast> forecasts,
        forecaster.Foresee({.partition = cost.partition, .epsilon = wish.epsilon, .k = wish.k},
                           ladder));
    for (size_t i = 0; i < ladder.size(); ++i) {
      QueryPlan plan{.cost = cost,
                     .cells = forecaster.cells()[partition],
                     .items = ladder[i],
                     .k = wish.k,
                     .forecast = forecasts[i],
                     .fulfils = Fulfils(wish, forecasts[i])};
      if (!best || Better(wish, plan, *best)) best = std::move(plan);
    }
  }
  return *std::move(best);
}

absl::Status SayWhyNot(const Forecaster& forecaster, const PlanWish& wish, int64_t most,
                       QueryPlan* plan) {
  const CellAsk ask{.partition = plan->cost.partition, .epsilon = wish.epsilon, .k = wish.k};
  PM_ASSIGN_OR_RETURN(const std::vector<Forecast> open,
                      forecaster.Foresee(ask, {forecaster.items()}));
  const auto& [open_fidelity, open_recall] = open.front();
  if (wish.fidelity && plan->forecast.fidelity.value < *wish.fidelity) {
    if (open_fidelity.value < *wish.fidelity) {
      plan->open_fidelity = open_fidelity;
    } else {
      const double share = static_cast<double>(most) / static_cast<double>(forecaster.items());
      plan->ceiling = CeilingFor(wish.epsilon, share, *wish.fidelity);
    }
  }
  if (wish.recall && plan->forecast.recall.value < *wish.recall) plan->open_recall = open_recall;
  return absl::OkStatus();
}

}  // namespace

int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes) {
  const int64_t of_items = items * ItemBytes(parameters, id_bytes);
  return of_items + (of_items / kMessageBytes + 1) * RestOfMessage(parameters);
}

int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes) {
  int64_t items = 0, more = bytes / ItemBytes(parameters, id_bytes) + 1;  // which have no room
  while (items + 1 < more) {
    const int64_t between = items + (more - items) / 2;
    const bool have_room = AnswerBytes(parameters, between, id_bytes) <= bytes;
    (have_room ? items : more) = between;
  }
  return items;
}

Ceiling CeilingFor(double epsilon, double share, double wished) {
  const double odds = wished / (1 - wished);
  return {.share = share,
          .fidelity = CellCeiling(epsilon, share),
          .share_needed = CellCeiling(-epsilon, wished),
          .epsilon_needed = std::max(0., std::log(odds * (1 - share) / share))};
}

std::string Ceiling::InWords(double epsilon, double wished) const {
  // Beyond 709 they are no numbers of ours.
  const bool counts = std::isfinite(std::exp(epsilon));
  const std::string power =
      counts ? absl::StrFormat("%.4g", std::exp(epsilon)) : absl::StrFormat("e^%g", epsilon);
  const std::string less_one = counts ? absl::StrFormat("%.4g", std::expm1(epsilon))
                                      : absl::StrFormat("(e^%g - 1)", epsilon);
  return absl::StrFormat(
      "ceiling: of a share f = %.3g of the items that may answer, a choice at epsilon %g has the "
      "right cell with f e^epsilon / (1 + f (e^epsilon - 1)) = %.3g x %s / (1 + %.3g x %s) = "
      "%.3f at most; for %g it takes epsilon %.3g with this share, or a share of %.3g with this "
      "epsilon; it is a mean over cells that are equally wanted, and items that many queries want "
      "may come back a little more often",
      share, epsilon, share, power, share, less_one, fidelity, wished, epsilon_needed,
      share_needed);
}

std::string QueryPlan::OpenFidelityInWords() const {
  return absl::StrFormat(
      "even a search that hides nothing is predicted to have %.2f (%.2f to %.2f) of the %d "
      "nearest items among its matches, as the codes that items come back in rank them",
      open_fidelity->value, open_fidelity->low, open_fidelity->high, k);
}

std::string QueryPlan::OpenRecallInWords(double wished) const {
  const std::string found = absl::StrFormat(
      "a search that hides nothing is predicted to find the class among its %d matches with "
      "probability %.2f (%.2f to %.2f), rather more",
      k, open_recall->value, open_recall->low, open_recall->high);
  return open_recall->value < wished ? absl::StrFormat("no ceiling, but even %s", found)
                                     : absl::StrFormat("no ceiling: %s", found);
}

absl::StatusOr<QueryPlan> MakePlan(const PublicParameters& parameters, const Forecaster& forecaster,
                                   const PlanWish& wish) {
  PM_RETURN_IF_ERROR(CheckWish(wish, forecaster.items()));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> ladder,
                      Ladder(parameters, wish, forecaster.items()));
  PM_ASSIGN_OR_RETURN(QueryPlan best, BestOf(forecaster, wish, ladder));
  PM_ASSIGN_OR_RETURN(const CellMechanism mechanism,
                      CellMechanism::Create({.cells = best.cells,
                                             .ask = best.cost.ask,
                                             .focus = best.cost.focus,
                                             .epsilon = wish.epsilon}));
  best.guarantee = mechanism.guarantee();
  best.bytes_down = AnswerBytes(parameters, best.items, wish.id_bytes);
  if (!best.fulfils) {
    PM_RETURN_IF_ERROR(SayWhyNot(forecaster, wish, ladder.back(), &best));
  }
  return best;
}

}  // namespace privatemail::client

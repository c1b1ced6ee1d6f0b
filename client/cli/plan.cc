// `privatemail plan`: plans a query for cells from the quality that the server has measured; spends
// nothing.
#include "client/cli/plan.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/numbers.h"
#include "client/cli/plan_file.h"
#include "client/files/private_file.h"
#include "client/planning/published_quality.h"
#include "client/planning/query_plan.h"
#include "client/schemes/published_collection.h"
#include "client/search/result_json.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/proto_conversions.h"

namespace privatemail::client::cli {
namespace {

constexpr double kTableEpsilons[] = {.25, .5, 1, 2, 4, 8};
constexpr int64_t kTableBytes[] = {10'000, 30'000, 100'000, 300'000, 1'000'000, 3'000'000};

struct PlanOptions {
  std::string name;
  PlanWish wish;
  std::optional<double> epsilon;
  std::string out;

  bool has_max_bytes() const { return wish.max_bytes != PlanWish{}.max_bytes; }
  bool wants_table() const {
    return !has_max_bytes() && !wish.fidelity && !wish.recall && out.empty();
  }
};

struct MeasuredCollection {
  v1::GetCollectionResponse proto;
  PublicParameters parameters;
  CellQuality quality;

  int64_t items() const { return static_cast<int64_t>(proto.cells_items()); }
};

nlohmann::json EstimateJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
}

}  // namespace

nlohmann::json PlanJson(const QueryPlan& plan) {
  return {{"epsilon", plan.cost.epsilon},
          {"partition", plan.cost.partition},
          {"cells", plan.cells},
          {"ask", plan.cost.ask},
          {"focus", plan.cost.focus},
          {"items", plan.items},
          {"fidelity", EstimateJson(plan.prediction.fidelity)},
          {"recall", EstimateJson(plan.prediction.recall)},
          {"bytes", {{"down", plan.bytes_down}}}};
}

namespace {

nlohmann::json HeadJson(const MeasuredCollection& collection) {
  return {{"collection", collection.proto.name()},
          {"scheme", "cells"},
          {"of_items", collection.items()},
          {"k", kQualityMatches},
          {"code", CodeName(collection.proto.parameters().cell_code())},
          {"measured_queries", collection.quality.queries},
          {"spent", ToJson(Budget{})}};
}

// Fidelity by epsilon and bytes.
absl::StatusOr<Result> Table(const MeasuredCollection& collection, const PlanOptions& options) {
  std::vector<double> epsilons(std::begin(kTableEpsilons), std::end(kTableEpsilons));
  if (options.epsilon) epsilons = {*options.epsilon};
  std::vector<int64_t> columns;
  for (const int64_t bytes : kTableBytes) {
    const int64_t items = ItemsWithin(collection.parameters, bytes, options.wish.id_bytes);
    if (items >= kQualityMatches) columns.push_back(bytes);
    if (items >= collection.quality.items.back()) break;
  }
  Result result{.json = HeadJson(collection)};
  result.columns = {{"table", {"epsilon", "max_bytes", "items", "fidelity", "recall"}}};
  for (const double epsilon : epsilons) {
    for (const int64_t bytes : columns) {
      PlanWish wish = options.wish;
      wish.epsilon = epsilon;
      wish.max_bytes = bytes;
      PM_ASSIGN_OR_RETURN(const QueryPlan plan, MakePlan(collection.parameters, collection.quality,
                                                         collection.items(), wish));
      nlohmann::json cell = PlanJson(plan);
      cell["max_bytes"] = bytes;
      result.json["table"].push_back(std::move(cell));
    }
  }
  return result;
}

absl::Status Write(const MeasuredCollection& collection, const QueryPlan& plan,
                   const std::string& out) {
  PM_ASSIGN_OR_RETURN(PrivateFile file, PrivateFile::Create("--out", out));
  return file.Commit(cli::PlanText({.collection = collection.proto.name(),
                                    .fingerprint = collection.proto.fingerprint(),
                                    .cost = plan.cost,
                                    .items = plan.items,
                                    .k = kQualityMatches}));
}

absl::StatusOr<Result> OnePlan(const MeasuredCollection& collection, const PlanOptions& options) {
  PM_ASSIGN_OR_RETURN(const QueryPlan plan, MakePlan(collection.parameters, collection.quality,
                                                     collection.items(), options.wish));
  Result result{.json = HeadJson(collection), .exit_code = plan.fulfils ? 0 : kExitFailure};
  result.json.update(PlanJson(plan));
  result.json["bytes"]["assumed_id_bytes"] = options.wish.id_bytes;
  result.json["guarantee"] = ToJson(plan.guarantee);
  result.json["fulfils"] = plan.fulfils;
  if (options.wish.fidelity && plan.prediction.fidelity.value < *options.wish.fidelity) {
    const double share = static_cast<double>(plan.items) / static_cast<double>(collection.items());
    result.json["ceiling"] = {{"share", share},
                              {"words", WhyNot(plan, share, *options.wish.fidelity)}};
  }
  if (options.out.empty()) return result;
  result.json["file"] = nullptr;
  if (!plan.fulfils) return result;
  PM_RETURN_IF_ERROR(Write(collection, plan, options.out));
  result.json["file"] = options.out;
  result.hint =
      absl::StrCat("`privatemail query ", options.name, " --plan ", options.out, "` uses it");
  return result;
}

absl::StatusOr<Result> Plan(const Context& context, PlanOptions options) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("--id-bytes", options.wish.id_bytes, 1, 1 << 16));
  if (options.epsilon) {
    options.wish.epsilon = *options.epsilon;
  } else if (!options.wants_table()) {
    return absl::InvalidArgumentError(
        "--epsilon must be given for a plan; without it, --max-bytes, --fidelity, --recall and "
        "--out, a table of what queries find is printed");
  }
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  MeasuredCollection collection;
  PM_ASSIGN_OR_RETURN(collection.proto, transport.GetCollection(options.name, {.quality = true}));
  PM_ASSIGN_OR_RETURN(collection.quality, QualityOf(collection.proto));
  PM_ASSIGN_OR_RETURN(collection.parameters, ReadBuiltCollection(collection.proto));
  return options.wants_table() ? Table(collection, options) : OnePlan(collection, options);
}

}  // namespace

void AddPlanCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlanOptions>();
  PlanWish& wish = options->wish;
  CLI::App* plan = AddCommand(
      app, "plan",
      "Plan a query for cells: what it finds and costs, as measured by the server, at no cost and "
      "without a target");
  plan->add_option("NAME", options->name, "The collection, with cells and published quality")
      ->required();
  plan->add_option("--epsilon", options->epsilon, "Epsilon of each query");
  AddBytes(plan, "--max-bytes", &wish.max_bytes,
           "Maximum size of an answer: bytes, or with K, M or G, of 1,000 each");
  plan->add_option("--fidelity", wish.fidelity,
                   "Required share of the 8 nearest items among the 8 matches; without this and "
                   "--recall the maximum is planned");
  plan->add_option("--recall", wish.recall,
                   "Required probability that one of the 8 matches has the query's class");
  plan->add_option("--id-bytes", wish.id_bytes,
                   "Assumed length of an item's id, which is not published")
      ->capture_default_str();
  plan->add_option("--out", options->out,
                   "File for query --plan; written if the plan meets the requirements");
  plan->footer(
      "Prints the plan of fewest bytes that meets the requirements; without requirements and "
      "--max-bytes a table. Fidelity and recall are means over queries like the gallery's items, "
      "with 95 % intervals. Exit code 1: no plan meets the requirements; the best one is shown.");
  SetRun(plan, context, options, &Plan);
}

}  // namespace privatemail::client::cli

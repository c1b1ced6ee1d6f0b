// `privatemail plan`: plans a query for cells and predicts its recall and cost; spends nothing.
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/plan_file.h"
#include "client/cli/plan_timing.h"
#include "client/cli/private_file.h"
#include "client/cli/query_batch.h"
#include "client/flags/numbers.h"
#include "client/planning/forecast.h"
#include "client/planning/query_plan.h"
#include "client/schemes/published_collection.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/cell_client.h"
#include "privatemail/joint_scheme.h"

namespace privatemail::client::cli {
namespace {

struct PlanOptions {
  std::string name;
  PlanWish wish;
  std::optional<double> radius;
  std::string out;
};

struct PlanAnswer {
  QueryPlan plan = {};
  PlanTiming timing = {};
  int64_t gallery = 0;
  int64_t anchors = 0;
  std::string code;
  std::string collection;
  std::optional<RadiusStats> radius = {};
  std::vector<std::string> warnings = {};
};

// With fewer anchors per class, intervals held less often than stated.
std::vector<std::string> WarningsAbout(const PublicParameters& parameters) {
  constexpr int64_t kFewOfAClass = 5;
  const auto classes = std::ssize(parameters.slot_labels);
  std::vector<std::string> warnings;
  if (parameters.anchor_count < kFewOfAClass * classes) {
    warnings.push_back(
        absl::StrCat("the collection has fewer than ", kFewOfAClass, " anchors a class (",
                     parameters.anchor_count, " of ", classes,
                     " classes): recall may lie outside the interval, more likely above it"));
  }
  return warnings;
}

// The meaning of a radius of the anchored scheme on this collection.
absl::StatusOr<std::optional<RadiusStats>> DescribeRadius(const std::optional<double>& radius,
                                                          const PublicParameters& parameters,
                                                          const Anchors& anchors) {
  constexpr double kDiameter = 2;  // of the unit ball
  if (!radius.has_value()) return std::nullopt;
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", *radius));
  PM_RETURN_IF_ERROR(CheckBetween("radius", *radius, 0, kDiameter));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, UnitRows("anchors", anchors.features));
  std::vector<int64_t> slots;
  for (const int32_t label : anchors.labels) {
    PM_ASSIGN_OR_RETURN(slots.emplace_back(), parameters.SlotOf(label));
  }
  return ComputeRadiusStats(unit_anchors, slots, *radius);
}

nlohmann::json ToJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
}

void AddCeilings(const QueryPlan& plan, const PlanWish& wish, nlohmann::json* json) {
  if (plan.ceiling.has_value()) {
    (*json)["ceiling"] = {{"share", plan.ceiling->share},
                          {"fidelity", plan.ceiling->fidelity},
                          {"share_needed", plan.ceiling->share_needed},
                          {"epsilon_needed", plan.ceiling->epsilon_needed},
                          {"words", plan.ceiling->InWords(wish.epsilon, *wish.fidelity)}};
  }
  if (plan.open_fidelity.has_value()) {
    nlohmann::json& open = (*json)["open_fidelity"] = ToJson(*plan.open_fidelity);
    open["words"] = plan.OpenFidelityInWords();
  }
  if (plan.open_recall.has_value()) {
    nlohmann::json& open = (*json)["open_recall"] = ToJson(*plan.open_recall);
    open["words"] = plan.OpenRecallInWords(*wish.recall);
  }
}

nlohmann::json ToJson(const PlanAnswer& answer, const PlanWish& wish) {
  const QueryPlan& plan = answer.plan;
  nlohmann::json json = {
      {"collection", answer.collection},
      {"scheme", "cells"},
      {"partition", plan.cost.partition},
      {"cells", plan.cells},
      {"ask", plan.cost.ask},
      {"focus", plan.cost.focus},
      {"items", plan.items},
      {"of_items", answer.gallery},
      {"k", plan.k},
      {"code", answer.code},
      {"fidelity", ToJson(plan.forecast.fidelity)},
      {"recall", ToJson(plan.forecast.recall)},
      {"foreseen_from_anchors", answer.anchors},
      {"bytes", {{"down", plan.bytes_down}, {"assumed_id_bytes", wish.id_bytes}}},
      {"timings", {{"choose_ms", answer.timing.choose_ms}, {"rank_ms", answer.timing.rank_ms}}},
      {"guarantee", cli::ToJson(plan.guarantee)},
      {"spent", cli::ToJson(Budget{})},
      {"fulfils", plan.fulfils},
      {"warnings", answer.warnings},
      {"radius_meaning", cli::ToJson(answer.radius)}};
  AddCeilings(plan, wish, &json);
  return json;
}

std::string InWords(const char* what, int64_t k, const Estimate& estimate) {
  return absl::StrFormat("%s@%d %.2f (%.2f to %.2f)", what, k, estimate.value, estimate.low,
                         estimate.high);
}

// "fidelity 0.5 and recall 0.9"
std::string InWords(const PlanWish& wish) {
  std::vector<std::string> words;
  if (wish.fidelity) words.push_back(absl::StrCat("fidelity ", *wish.fidelity));
  if (wish.recall) words.push_back(absl::StrCat("recall ", *wish.recall));
  return absl::StrJoin(words, " and ");
}

std::string CostText(const PlanAnswer& answer, const PlanWish& wish) {
  const QueryPlan& plan = answer.plan;
  return absl::StrFormat(
      "scheme cells: request %d of the %d cells of partition %d, preferring the nearest %d; %d of "
      "%d "
      "items are returned, as %s\n"
      "%s, %s: predicted from %d anchors, nothing was spent\n"
      "%d bytes down without payloads, if ids take %d bytes\n"
      "%.2g ms to choose and %.2g ms to rank on this machine, without network and server\n"
      "each query spends epsilon %g (%s: %s); hidden: %s\n",
      plan.cost.ask, plan.cells, plan.cost.partition, plan.cost.focus, plan.items, answer.gallery,
      answer.code, InWords("fidelity", plan.k, plan.forecast.fidelity),
      InWords("recall", plan.k, plan.forecast.recall), answer.anchors, plan.bytes_down,
      wish.id_bytes, answer.timing.choose_ms, answer.timing.rank_ms, plan.guarantee.epsilon,
      plan.guarantee.proven ? "proven" : "NOT proven", plan.guarantee.source,
      plan.guarantee.neighbours);
}

std::string ToText(const PlanAnswer& answer, const PlanOptions& options) {
  const QueryPlan& plan = answer.plan;
  const PlanWish& wish = options.wish;
  std::string text;
  if (!plan.fulfils) {
    absl::StrAppendFormat(
        &text, "no plan is predicted to reach %s with epsilon %g and %d bytes; the best:\n",
        InWords(wish), wish.epsilon, wish.max_bytes);
  }
  text += CostText(answer, wish);
  if (plan.ceiling) text += plan.ceiling->InWords(wish.epsilon, *wish.fidelity) + "\n";
  if (plan.open_fidelity) text += plan.OpenFidelityInWords() + "\n";
  if (plan.open_recall) text += plan.OpenRecallInWords(*wish.recall) + "\n";
  if (answer.radius.has_value()) {
    absl::StrAppend(&text, "instead, --scheme anchored --mechanism lap-output --radius ",
                    answer.radius->radius,
                    " hides the features within the radius and not the class, and finds the class; "
                    "of the anchors ",
                    answer.radius->ToString(), ". Its recall is not predicted\n");
  }
  if (options.out.empty()) return text;
  if (plan.fulfils) {
    absl::StrAppend(&text, "privatemail query ", Printable(answer.collection), " --plan ",
                    Printable(options.out), " runs this plan\n");
  } else {
    absl::StrAppend(&text, Printable(options.out),
                    " was not written; if it exists, it holds an earlier plan\n");
  }
  return text;
}

// Daemons number the rows of a gallery in 31 bits; planning for more would take long.
constexpr uint64_t kMaxGallery = std::numeric_limits<int32_t>::max();

absl::Status CheckPlannable(const v1::GetCollectionResponse& collection) {
  if (collection.embedded_items() > kMaxGallery) {
    return absl::DataLossError(
        absl::StrCat("collection ", collection.name(), " has ", collection.embedded_items(),
                     " items according to the server, expected at most 2^31 - 1"));
  }
  if (collection.embedded_items() > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("collection ", collection.name(),
                   " has no searchable items: run `privatemail ingest` and `privatemail build`"));
}

// Writes a plan that fulfils the wish only.
absl::Status Write(const QueryPlan& plan, const v1::GetCollectionResponse& collection,
                   PrivateFile& file) {
  if (!plan.fulfils) return absl::OkStatus();
  return file.Commit(PlanText({.collection = collection.name(),
                               .fingerprint = collection.fingerprint(),
                               .cost = plan.cost,
                               .items = plan.items,
                               .k = plan.k}));
}

absl::StatusOr<std::optional<PrivateFile>> OpenPlanFile(const std::string& out) {
  if (out.empty()) return std::nullopt;
  PM_ASSIGN_OR_RETURN(PrivateFile file, PrivateFile::Create("--out", out));
  return std::optional<PrivateFile>(std::move(file));
}

absl::StatusOr<PlanAnswer> ComputePlan(const CellClient& client, const Anchors& anchors,
                                       const v1::GetCollectionResponse& collection,
                                       const PlanOptions& options) {
  const PublicParameters& parameters = client.parameters();
  PlanAnswer answer{.gallery = static_cast<int64_t>(collection.embedded_items()),
                    .anchors = parameters.anchor_count,
                    .code = CodeName(ToProto(*parameters.cell_code)),
                    .collection = collection.name(),
                    .warnings = WarningsAbout(parameters)};
  PM_ASSIGN_OR_RETURN(answer.radius, DescribeRadius(options.radius, parameters, anchors));
  PM_ASSIGN_OR_RETURN(const Forecaster forecaster,
                      Forecaster::Create(parameters, anchors, answer.gallery));
  PM_ASSIGN_OR_RETURN(answer.plan, MakePlan(parameters, forecaster, options.wish));
  if (const auto why = forecaster.WhyUnmeasured(answer.plan.items)) {
    answer.warnings.push_back(*why);
  }
  if (answer.plan.items == answer.gallery) {
    answer.warnings.push_back(absl::StrCat("all ", answer.gallery,
                                           " items are returned for every cell: any smaller "
                                           "epsilon finds as much"));
  }
  PM_ASSIGN_OR_RETURN(answer.timing,
                      TimePlan(client.scheme(), anchors, answer.plan, options.wish.id_bytes));
  return answer;
}

absl::StatusOr<Result> Plan(const Context& context, const PlanOptions& options) {
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(options.name));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> chunks,
                      transport.GetAnchors(options.name, collection.fingerprint()));
  PM_ASSIGN_OR_RETURN(const CellClient client, CellClient::Create(collection, chunks));
  PM_RETURN_IF_ERROR(CheckPlannable(collection));
  PM_ASSIGN_OR_RETURN(const Anchors anchors, JoinAnchors(chunks, client.parameters().feature_dim));
  PM_ASSIGN_OR_RETURN(std::optional<PrivateFile> file, OpenPlanFile(options.out));
  PM_ASSIGN_OR_RETURN(const PlanAnswer answer, ComputePlan(client, anchors, collection, options));
  if (file) PM_RETURN_IF_ERROR(Write(answer.plan, collection, *file));
  for (const std::string& warning : answer.warnings) Warn(warning);
  return Result{.json = ToJson(answer, options.wish),
                .text = ToText(answer, options),
                .exit_code = answer.plan.fulfils ? 0 : kExitFailure};
}

}  // namespace

void AddPlanCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlanOptions>();
  PlanWish& wish = options->wish;
  CLI::App* plan = AddCommand(
      app, "plan",
      "Plan a query for cells: its recall and cost, predicted from the collection's public "
      "anchors, at no cost and without a target");
  plan->add_option("NAME", options->name, "The collection, with cells")->required();
  plan->add_option("--epsilon", wish.epsilon, "Epsilon of each query")->required();
  AddBytes(plan, "--max-bytes", &wish.max_bytes,
           "Maximum size of an answer: bytes, or with K, M or G, of 1,000 each")
      ->required();
  plan->add_option(
      "--fidelity", wish.fidelity,
      "Required share of the -k nearest items among the -k matches; without this and --recall "
      "the maximum is planned");
  plan->add_option("--recall", wish.recall,
                   "Required probability that one of the -k matches has the query's class");
  plan->add_option("-k", wish.k, "Number of matches")->capture_default_str();
  plan->add_option("--radius", options->radius,
                   "Also describe this radius of the anchored scheme on the collection");
  plan->add_option("--id-bytes", wish.id_bytes,
                   "Assumed length of an item's id, which is not published")
      ->capture_default_str();
  plan->add_option("--out", options->out,
                   "File for query --plan; written if the plan meets the requirements");
  plan->footer(
      "Prints the plan of fewest bytes that is predicted to meet the requirements. Fidelity and "
      "recall are of the matches, ranked by the items' codes. Intervals contained the mean in nine "
      "of ten cases on data like the data they were fitted to, in seven to nine on other data: see "
      "docs/results.md. Queries and items must resemble the anchors. Exit code 1: no plan meets "
      "the "
      "requirements; the best one is shown.");
  SetRun(plan, context, options, &Plan);
}

}  // namespace privatemail::client::cli

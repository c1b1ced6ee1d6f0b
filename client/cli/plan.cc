// `privatemail plan`: plans a query for cells from the quality that the server has measured; spends
// nothing.
#include "client/cli/plan.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/files/private_file.h"
#include "client/planning/published_quality.h"
#include "client/schemes/published_collection.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

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

constexpr size_t kFingerprintBytes = 32;

absl::Status NoPlan(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--plan ", path, " is not a file written by `privatemail plan --out`: ", why));
}

template <typename Value>
absl::Status Take(const std::string& path, const nlohmann::json& plan, const char* field,
                  bool (nlohmann::json::*is)() const noexcept, Value* value) {
  if (!plan.contains(field) || !(plan[field].*is)()) {
    return NoPlan(path, absl::StrCat(field, " is missing or of another type"));
  }
  *value = plan[field].get<Value>();
  return absl::OkStatus();
}

// nlohmann::json stores numbers beyond int64_t as unsigned; get<int64_t>() makes them negative.
absl::Status TakeCount(const std::string& path, const nlohmann::json& plan, const char* field,
                       int64_t* value) {
  PM_RETURN_IF_ERROR(Take(path, plan, field, &nlohmann::json::is_number_integer, value));
  if (!plan[field].is_number_unsigned() || *value >= 0) return absl::OkStatus();
  return NoPlan(path, absl::StrCat(field, " is ", plan[field].dump(), ", which is too large"));
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

std::string PlanText(const SearchRequest& query) {
  const nlohmann::json plan = {{"collection", query.collection},
                               {"fingerprint", ToHex(*query.fingerprint)},
                               {"scheme", "cells"},
                               {"partition", *query.partition},
                               {"ask", *query.ask},
                               {"focus", *query.focus},
                               {"epsilon", *query.epsilon},
                               {"items", *query.items}};
  return plan.dump() + "\n";
}

absl::Status ReadPlan(const std::string& path, SearchRequest* request) {
  using nlohmann::json;
  const absl::StatusOr<std::string> text = ReadFile("--plan", path);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const json plan = json::parse(*text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return NoPlan(path, "it holds no JSON object");
  std::string collection, scheme, fingerprint;
  PM_RETURN_IF_ERROR(Take(path, plan, "collection", &json::is_string, &collection));
  PM_RETURN_IF_ERROR(Take(path, plan, "fingerprint", &json::is_string, &fingerprint));
  PM_RETURN_IF_ERROR(Take(path, plan, "scheme", &json::is_string, &scheme));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "partition", &request->partition.emplace()));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "ask", &request->ask.emplace()));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "focus", &request->focus.emplace()));
  PM_RETURN_IF_ERROR(Take(path, plan, "epsilon", &json::is_number, &request->epsilon.emplace()));
  PM_RETURN_IF_ERROR(TakeCount(path, plan, "items", &request->items.emplace()));
  if (scheme != "cells") {
    return NoPlan(path, absl::StrCat("scheme must be cells, but is ", scheme));
  }
  request->scheme = Scheme::kCells;
  request->fingerprint = absl::HexStringToBytes(fingerprint);
  if (request->fingerprint->size() != kFingerprintBytes ||
      ToHex(*request->fingerprint) != fingerprint) {
    return NoPlan(path, "fingerprint must be 64 hexadecimal digits");
  }
  if (collection == request->collection) return absl::OkStatus();
  return FieldError("plan", absl::StrCat("for collection ", request->collection),
                    absl::StrCat("for ", collection));
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
  result.text = absl::StrFormat("share of the %d nearest of %d items that a query finds\nepsilon",
                                kQualityMatches, collection.items());
  for (const int64_t bytes : columns) {
    absl::StrAppendFormat(&result.text, "  %7.0f kB", static_cast<double>(bytes) / 1000);
  }
  result.text += "\n";
  result.hint = absl::StrCat("`privatemail plan ", collection.proto.name(),
                             " --epsilon E --max-bytes B --out FILE` writes a plan for `query`");
  result.columns = {{"table", {"epsilon", "max_bytes", "items", "fidelity", "recall"}}};
  for (const double epsilon : epsilons) {
    absl::StrAppendFormat(&result.text, "%7g", epsilon);
    for (const int64_t bytes : columns) {
      PlanWish wish = options.wish;
      wish.epsilon = epsilon;
      wish.max_bytes = bytes;
      PM_ASSIGN_OR_RETURN(const QueryPlan plan, MakePlan(collection.parameters, collection.quality,
                                                         collection.items(), wish));
      nlohmann::json cell = PlanJson(plan);
      cell["max_bytes"] = bytes;
      result.json["table"].push_back(std::move(cell));
      absl::StrAppendFormat(&result.text, "  %10.2f", plan.prediction.fidelity.value);
    }
    result.text += "\n";
  }
  return result;
}

absl::Status Write(const MeasuredCollection& collection, const QueryPlan& plan,
                   const std::string& out) {
  PM_ASSIGN_OR_RETURN(const auto file, PrivateFile::Create("--out", out));
  return file->Commit(PlanText({.collection = collection.proto.name(),
                                .fingerprint = collection.proto.fingerprint(),
                                .k = kQualityMatches,
                                .epsilon = plan.cost.epsilon,
                                .partition = plan.cost.partition,
                                .ask = plan.cost.ask,
                                .focus = plan.cost.focus,
                                .items = plan.items}));
}

absl::StatusOr<Result> OnePlan(const MeasuredCollection& collection, const PlanOptions& options) {
  PM_ASSIGN_OR_RETURN(const QueryPlan plan, MakePlan(collection.parameters, collection.quality,
                                                     collection.items(), options.wish));
  Result result{.json = HeadJson(collection),
                .exit_code = plan.fulfils ? 0 : kExitFailure,
                .brief = {"collection", "epsilon", "cells", "ask", "items", "fidelity", "recall",
                          "bytes", "fulfils", "ceiling", "file"}};
  result.json.update(PlanJson(plan));
  result.json["assumed_id_bytes"] = options.wish.id_bytes;
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
  const auto [plan, options] = AddCommand(
      app, context, "plan",
      "Plan a query for cells: what it finds and costs, as measured by the server, at no cost and "
      "without a target",
      &Plan);
  PlanWish& wish = options->wish;
  plan->add_option("NAME", options->name, "The collection, with cells and published quality")
      ->required();
  plan->add_option("--epsilon", options->epsilon, "Epsilon of each query");
  AddBytes(plan, "--max-bytes", &wish.max_bytes,
           "Maximum size of an answer: bytes, or with K, M or G, of 1,000 each");
  plan->add_option("--fidelity", wish.fidelity,
                   "Required share of the 8 nearest items among the 8 matches; without this and "
                   "--recall the maximum is planned");
  plan->add_option("--recall", wish.recall,
                   "Required probability that one of the 8 matches has the query's label");
  plan->add_option("--out", options->out,
                   "File for query --plan; written if the plan meets the requirements");
  plan->footer(
      "Prints the plan of fewest bytes that meets the requirements; without requirements and "
      "--max-bytes a table. Fidelity and recall are means over queries like the gallery's items, "
      "with 95 % intervals. Exit code 1: no plan meets the requirements; the best one is shown.");
}

}  // namespace privatemail::client::cli

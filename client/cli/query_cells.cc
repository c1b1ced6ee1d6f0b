#include "client/cli/query_cells.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/collection.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/items/item_label.h"

namespace privatemail::client::cli {
namespace {

CellQueryOptions OptionsOf(const CellsQuery& query) {
  return {.cost = {.partition = query.cells.partition,
                   .ask = query.cells.ask,
                   .focus = query.cells.focus,
                   .epsilon = query.epsilon},
          .items = query.cells.items.value_or(0),
          .k = query.k,
          .with_payloads = query.with_payloads};
}

}  // namespace

nlohmann::json OutcomeJson(const CellsOutcome& outcome, const CellClient& client,
                           const std::vector<std::string>& warnings) {
  const v1::RetrieveCellsRequest& request = outcome.prepared.request;
  nlohmann::json json = {
      {"query", outcome.target.name},
      {"collection", request.collection()},
      {"scheme", "cells"},
      {"matches", ToJson(outcome.result.matches)},
      {"candidates", outcome.result.candidates},
      {"partition", request.partition()},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"warnings", warnings},
      {"guarantee", ToJson(outcome.prepared.state.guarantee)},
      {"ledger", LedgerJson(outcome.ledger)},
      {"bytes", {{"up", request.ByteSizeLong()}, {"down", outcome.bytes_down()}}},
      {"timings",
       {{"features_ms", outcome.target.features_ms},
        {"release_ms", outcome.release_ms},
        {"round_trip_ms", outcome.round_trip_ms}}},
      {"items_version", outcome.result.items_version}};
  if (outcome.target.row) json["row"] = *outcome.target.row;
  AddPlaceJson(outcome.prepared.state.target, outcome.target.guessed, &json);
  if (const auto alignment = client.targets().expected_alignment()) {
    json["alignment"] = ToJson(*alignment);
    json["alignment"]["relative_residual"] = alignment->relative_residual;
  }
  return json;
}

namespace {

std::string ToText(const CellsOutcome& outcome, const CellClient& client) {
  const PublicParameters& parameters = client.parameters();
  const Guarantee& guarantee = outcome.prepared.state.guarantee;
  return absl::StrCat(
      "\nquery ", Printable(outcome.target.name), "\n",
      MatchesText(outcome.result.matches, parameters),
      PlaceText(outcome.prepared.state.target, outcome.target.guessed, parameters,
                client.targets().expected_alignment()),
      absl::StrFormat(
          "  the nearest of %d returned items, for %s: %s of partition %d\n"
          "  spent epsilon %g (%s); left %s\n  hidden: %s\n  %d bytes up, %d bytes down\n"
          "  features %.1f ms, release %.1f ms, answer %.1f ms\n",
          outcome.result.candidates,
          Counted(static_cast<uint64_t>(outcome.prepared.request.cells_size()), "cell"),
          absl::StrJoin(outcome.prepared.request.cells(), ", "),
          outcome.prepared.request.partition(), guarantee.epsilon,
          guarantee.proven ? "proven" : "NOT a proven guarantee", LeftOf(outcome.ledger),
          guarantee.neighbours, outcome.prepared.request.ByteSizeLong(), outcome.bytes_down(),
          outcome.target.features_ms, outcome.release_ms, outcome.round_trip_ms));
}

}  // namespace

void AddCellsOptions(CLI::App* command, CellsOptions* options) {
  command
      ->add_option("--partition", options->partition,
                   "Cells: index of the collection's partition of the anchors, from 0")
      ->capture_default_str();
  command
      ->add_option("--ask", options->ask,
                   "Cells: number of cells in each request, which the server sees")
      ->capture_default_str();
  command
      ->add_option("--focus", options->focus,
                   "Cells: number of cells nearest to the query that the choice prefers")
      ->capture_default_str();
  command->add_option(
      "--items", options->items,
      "Cells: maximum number of items in the answer, shared evenly by the cells; an item "
      "in several cells is sent once. At least one a cell; choose it independently "
      "of the query. If absent, by the quality that the collection publishes: for each cell the "
      "fewest that find, up to .05 of the 8 nearest, as much as the most that were measured");
}

absl::Status CheckLabelsUsable(const TargetOptions& targets, const PublicParameters& parameters,
                               const std::string& option) {
  if (parameters.SendsCoordinates() || (targets.labels.empty() && targets.labels_file.empty())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(targets.labels.empty() ? "--labels" : "--label", " is of no use with ", option,
                   " for a collection whose --cell-code is not none: expected none"));
}

void AddPlaceJson(const CellTarget& target, bool guessed, nlohmann::json* answer) {
  if (!target.label.has_value()) return;
  (*answer)["label"] = *target.label;
  (*answer)["label_guessed"] = guessed;
  (*answer)["embedding_version"] = target.embedding_version;
}

std::string PlaceText(const CellTarget& target, bool guessed, const PublicParameters& parameters,
                      const std::optional<ExpectedAlignment>& alignment) {
  if (!target.label.has_value()) return "";
  const auto slot = parameters.SlotOf(*target.label);
  return absl::StrCat(
      "  ranked by coordinates of embedding ", target.embedding_version, ", placed as class ",
      slot.ok() ? Printable(parameters.ClassName(*slot)) : "?", guessed ? " (guessed)" : "",
      alignment ? absl::StrCat("; alignment ", AlignmentText(*alignment)) : "", "\n");
}

namespace {

// "class lime" or, without classes, "label 3" or "no label".
std::string DescribeLabel(int32_t label, const PublicParameters& parameters) {
  if (!parameters.HasClasses()) {
    return label == kNoLabel ? "no label" : absl::StrCat("label ", label);
  }
  const auto slot = parameters.SlotOf(label);
  return absl::StrCat("class ", slot.ok() ? Printable(parameters.ClassName(*slot)) : "?");
}

}  // namespace

std::string MatchesText(const std::vector<QueryMatch>& matches,
                        const PublicParameters& parameters) {
  std::string text;
  for (size_t i = 0; i < matches.size(); ++i) {
    const QueryMatch& match = matches[i];
    const bool shows_similarity =
        match.similarity.has_value() && parameters.metric != Metric::kEuclidean;
    absl::StrAppendFormat(&text, "%4d  %s   %s, %s %.4g\n", i + 1, Printable(match.id),
                          DescribeLabel(match.label, parameters),
                          shows_similarity ? "similarity" : "squared distance",
                          shows_similarity ? *match.similarity : match.squared_distance);
    if (match.payload.empty()) continue;
    absl::StrAppend(&text, "        ", Printable(Line(nlohmann::json::parse(match.payload))), "\n");
  }
  return text;
}

absl::Status QueryCells(const Context& context, const CellsQuery& query) {
  CellQueryOptions options = OptionsOf(query);
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(query.targets, Metric::kCosine));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  const bool chooses_items = !query.cells.items.has_value();
  PM_ASSIGN_OR_RETURN(CellQueries queries,
                      CellQueries::Fetch(transport, SettingsOf(context), query.collection,
                                         /*with_quality=*/chooses_items));
  PM_RETURN_IF_ERROR(CheckPlanned(query.fingerprint, queries.collection()));
  if (chooses_items) {
    PM_ASSIGN_OR_RETURN(options.items, queries.ItemsByQuality(options.cost));
  }
  PM_ASSIGN_OR_RETURN(const auto own_anchors, ReadOwnAnchors(query.targets));
  PM_RETURN_IF_ERROR(queries.CreateClient(own_anchors));
  const auto arrived = std::chrono::steady_clock::now();
  const CellClient& client = queries.client();
  if (!query.accept_misalignment) {
    PM_RETURN_IF_ERROR(OrAccept(client.targets().CheckAnchorsMatch()));
  }
  PM_RETURN_IF_ERROR(CheckLabelsUsable(query.targets, client.parameters(),
                                       query.fingerprint.empty() ? "--scheme cells" : "--plan"));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadLabelled(query.targets, client.parameters(), std::move(rows)));
  WaitForDeparture(query.targets, arrived);
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(const std::vector<CellsOutcome> outcomes,
                      queries.Run(targets, options, RecordAndWarn(&warnings)));
  for (const CellsOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    Print({.json = OutcomeJson(outcome, client, warnings), .text = ToText(outcome, client)},
          context.json);
  }
  return FailureOf(AttemptsOf(outcomes), targets.size(),
                   query.targets.images.empty() ? "privatemail resend --vectors FILE --row I"
                                                : "privatemail resend --image FILE");
}

}  // namespace privatemail::client::cli

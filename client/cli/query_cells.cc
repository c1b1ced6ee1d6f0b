#include "client/cli/query_cells.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/collection.h"
#include "client/cli/item_cache.h"
#include "client/cli/last_release.h"
#include "client/cli/query_batch.h"
#include "client/planning/query_plan.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::cli {
namespace {

struct CellsOutcome : Attempt {
  PreparedCellQuery prepared;
  std::vector<v1::RetrieveCellsResponse> response;
  CellQueryResult result;  // once finished

  int64_t memory() const {
    size_t bytes = 0;
    for (const v1::RetrieveCellsResponse& message : response) bytes += message.SpaceUsedLong();
    return static_cast<int64_t>(bytes);
  }
  size_t bytes_down() const {
    size_t bytes = 0;
    for (const v1::RetrieveCellsResponse& message : response) bytes += message.ByteSizeLong();
    return bytes;
  }
};

CellQueryOptions OptionsOf(const CellsQuery& query) {
  return {.cost = {.partition = query.cells.partition,
                   .ask = query.cells.ask,
                   .focus = query.cells.focus,
                   .epsilon = query.epsilon},
          .items = query.cells.items.value_or(0),
          .k = query.k,
          .with_payloads = query.with_payloads};
}

// As many for each requested cell as the published quality suggests.
absl::StatusOr<int64_t> ItemsByQuality(const v1::GetCollectionResponse& collection,
                                       const CellCost& cost) {
  const absl::StatusOr<CellQuality> quality = QualityOf(collection);
  if (absl::IsFailedPrecondition(quality.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--items must be given, the number of items to fetch, of which the nearest "
                     "are printed; its default is not known: ",
                     quality.status().message()));
  }
  PM_RETURN_IF_ERROR(quality.status());
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("partition", cost.partition, 0, std::ssize(quality->partitions) - 1));
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", cost.epsilon));
  const int64_t cells =
      collection.parameters().cell_partitions(static_cast<int>(cost.partition)).cells();
  PM_RETURN_IF_ERROR(CheckIntegerBetween("ask", cost.ask, 1, cells - 1));
  return std::min(cost.ask * DefaultItems(*quality, cost, cells),
                  static_cast<int64_t>(collection.cells_items()));
}

// A plan holds for the anchors that it was computed from only.
absl::Status CheckPlanned(const CellsQuery& query, const v1::GetCollectionResponse& collection) {
  if (query.fingerprint.empty() || query.fingerprint == collection.fingerprint()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("--plan was made for the public parameters ",
                                                    ToHex(query.fingerprint), ", but collection ",
                                                    collection.name(),
                                                    " has others now: plan again with "
                                                    "`privatemail plan`; nothing was spent"));
}

absl::Status CheckReady(const v1::GetCollectionResponse& collection) {
  if (collection.cells_ready()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the cells of collection ", collection.name(),
                                             " are not ready yet (", collection.cells(),
                                             "): try again later; nothing was spent"));
}

std::vector<std::string> WarningsAbout(const v1::GetCollectionResponse& collection,
                                       const CellQueryOptions& options) {
  std::vector<std::string> warnings;
  if (collection.changes_since_embedding() > 0) {
    warnings.push_back(absl::StrCat("answers are from the last build; ",
                                    Counted(collection.changes_since_embedding(), "change"),
                                    " since may be missing, except for deletions: `privatemail "
                                    "build ",
                                    collection.name(), "` (write access) includes them"));
  }
  if (static_cast<uint64_t>(options.items) > collection.embedded_items()) {
    warnings.push_back(absl::StrCat(options.items, " items are requested, but the gallery has ",
                                    collection.embedded_items(), ": no more are returned"));
  }
  return warnings;
}

// Coordinates of another embedding than the anchors' cannot be ranked: ends the batch before the
// next charge. Depends on public numbers only.
absl::Status CheckCoordinates(const CellsOutcome& outcome) {
  const CellTarget& target = outcome.prepared.state.target;
  if (!target.label.has_value()) return absl::OkStatus();  // codes need no embedding
  for (const v1::RetrieveCellsResponse& message : outcome.response) {
    PM_RETURN_IF_ERROR(CheckEmbeddingVersion(message.embedding_version(), target));
  }
  return absl::OkStatus();
}

// Saves the request first, so that `explain` shows it even if no answer comes.
absl::Status Send(const Context& context, const Transport& transport,
                  const v1::GetCollectionResponse& collection, CellsOutcome* outcome) {
  const v1::RetrieveCellsRequest& request = outcome->prepared.request;
  PM_RETURN_IF_ERROR(
      SaveLastRelease(context.state_folder,
                      {.scheme = Scheme::kCells, .collection = collection, .cells = request}));
  outcome->saved = true;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->response, RetrieveCells(transport, collection, request));
  outcome->round_trip_ms = MillisecondsSince(start);
  return CheckCoordinates(*outcome);
}

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

std::string ToText(const CellsOutcome& outcome, const CellClient& client) {
  const PublicParameters& parameters = client.parameters();
  const Guarantee& guarantee = outcome.prepared.state.guarantee;
  return absl::StrCat(
      "\nquery ", Printable(outcome.target.name), "\n", MatchesText(outcome.result, parameters),
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

absl::StatusOr<std::vector<v1::RetrieveCellsResponse>> RetrieveCells(
    const Transport& transport, const v1::GetCollectionResponse& collection,
    const v1::RetrieveCellsRequest& request) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(collection.parameters()));
  PM_RETURN_IF_ERROR(CheckCellCode(true, parameters.cell_code.has_value()));
  return transport.RetrieveCells(request, [&] {
    return [limit = CellAnswerLimit(parameters, request)](
               const v1::RetrieveCellsResponse& message) mutable { return limit.Add(message); };
  });
}

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

std::optional<int32_t> LabelOf(const NamedTarget& target) {
  if (target.guessed) return std::nullopt;
  return target.target.label;
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

std::string MatchesText(const CellQueryResult& result, const PublicParameters& parameters) {
  std::string text;
  for (size_t i = 0; i < result.matches.size(); ++i) {
    const QueryMatch& match = result.matches[i];
    const auto slot = parameters.SlotOf(match.label);
    absl::StrAppendFormat(
        &text, "%4d  %s   class %s, squared distance %.4g\n", i + 1, Printable(match.id),
        slot.ok() ? Printable(parameters.ClassName(*slot)) : "?", match.squared_distance);
    if (match.payload.empty()) continue;
    absl::StrAppend(&text, "        ", Printable(Line(nlohmann::json::parse(match.payload))), "\n");
  }
  return text;
}

absl::Status QueryCells(const Context& context, const CellsQuery& query) {
  CellQueryOptions options = OptionsOf(query);
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(query.targets));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  const bool chooses_items = !query.cells.items.has_value();
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(query.collection, {.quality = chooses_items}));
  PM_RETURN_IF_ERROR(CheckPlanned(query, collection));
  if (chooses_items) {
    PM_ASSIGN_OR_RETURN(options.items, ItemsByQuality(collection, options.cost));
  }
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      FetchAnchors(context, transport, collection, Scheme::kCells));
  PM_ASSIGN_OR_RETURN(const auto own_anchors, ReadOwnAnchors(query.targets));
  PM_ASSIGN_OR_RETURN(const CellClient client,
                      CellClient::Create(collection, anchors, own_anchors, LimitsOf(context)));
  PM_RETURN_IF_ERROR(CheckReady(collection));
  const absl::Status match = client.targets().CheckAnchorsMatch();
  if (!query.accept_misalignment) PM_RETURN_IF_ERROR(OrAccept(match));
  PM_RETURN_IF_ERROR(CheckLabelsUsable(query.targets, client.parameters(),
                                       query.fingerprint.empty() ? "--scheme cells" : "--plan"));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadLabelled(query.targets, client.parameters(), std::move(rows)));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(context.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(client.parameters().collection_uuid));
  PM_RETURN_IF_ERROR(
      CheckAffordable(query.collection, entry, targets.size(), {query.epsilon, /*delta=*/0}));
  std::vector<std::string> warnings = WarningsAbout(collection, options);
  if (!match.ok()) warnings.emplace_back(match.message());
  for (const std::string& warning : warnings) Warn(warning);

  AnswerCache cache(context.state_folder, collection, anchors);
  MemoryLimit answers(kBatchMemory, context.connection.max_memory);
  std::vector<CellsOutcome> outcomes = SendAll<CellsOutcome>(
      targets,
      [&](CellsOutcome* outcome) {
        const auto prepare = [&](BitSource& bits) {
          return client.Prepare(outcome->target.target.features, options, *ledger, bits,
                                LabelOf(outcome->target));
        };
        return ChargeAndPrepare(client.parameters().collection_uuid, *ledger, prepare, outcome);
      },
      [&](CellsOutcome* outcome) {
        PM_RETURN_IF_ERROR(Send(context, transport, collection, outcome));
        cache.Add(outcome->response);
        return answers.Reserve(outcome->memory());
      });
  WarnIfNotCached(cache.Finish());
  for (CellsOutcome& outcome : outcomes) {
    ReadResult(&outcome, [&] { return client.Finish(outcome.prepared, outcome.response); });
    if (!outcome.status.ok()) continue;
    Print({.json = OutcomeJson(outcome, client, warnings), .text = ToText(outcome, client)},
          context.json);
  }
  return FailureOf(AttemptsOf(outcomes), targets.size(),
                   query.targets.images.empty() ? "privatemail resend --vectors FILE --row I"
                                                : "privatemail resend --image FILE");
}

}  // namespace privatemail::client::cli

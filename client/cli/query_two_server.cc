#include "client/cli/query_two_server.h"

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/query_cells.h"
#include "client/flags/names.h"
#include "client/queries/two_server_queries.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

nlohmann::json GuaranteeJson(const TwoServerGuarantee& guarantee) {
  nlohmann::json json = {{"server_a", NameOf(guarantee.one.a)},
                         {"server_b", NameOf(guarantee.one.b)},
                         {"both_learn", guarantee.both},
                         {"source", guarantee.source}};
  if (!guarantee.assumption.empty()) json["assumption"] = guarantee.assumption;
  if (guarantee.both_bounded.has_value()) json["both_bounded"] = ToJson(*guarantee.both_bounded);
  return json;
}

}  // namespace

nlohmann::json OutcomeJson(const TwoServerOutcome& outcome, const TwoServerQueries& queries,
                           const TwoServerOptions& options,
                           const std::vector<std::string>& warnings) {
  const Halves<std::string>& operators = queries.image().operators();
  nlohmann::json json = {{"query", outcome.target.name},
                         {"collection", queries.collection().name()},
                         {"scheme", "two-server"},
                         {"mode", NameOf(options.mode)},
                         {"matches", ToJson(outcome.result.matches)},
                         {"candidates", outcome.result.candidates},
                         {"operators", {operators.a, operators.b}},
                         {"image", absl::BytesToHexString(queries.image().digest())},
                         {"warnings", warnings},
                         {"guarantee", GuaranteeJson(outcome.guarantee)},
                         {"bytes", {{"up", outcome.bytes_up}, {"down", outcome.bytes_down}}},
                         {"timings",
                          {{"features_ms", outcome.target.features_ms},
                           {"release_ms", outcome.release_ms},
                           {"round_trip_ms", outcome.round_trip_ms}}},
                         {"items_version", outcome.result.items_version}};
  if (options.mode == TwoServerMode::kLists) {
    json["partition"] = options.partition;
    json["lists"] = outcome.lists;
  }
  if (outcome.charged) json["ledger"] = LedgerJson(outcome.ledger);
  if (outcome.target.row) json["row"] = *outcome.target.row;
  return json;
}

namespace {

std::string GuaranteeText(const TwoServerOutcome& outcome, const TwoServerQueries& queries) {
  const TwoServerGuarantee& guarantee = outcome.guarantee;
  const Halves<std::string>& operators = queries.image().operators();
  std::string text =
      absl::StrCat("  ", Printable(operators.a), " alone learns nothing (", NameOf(guarantee.one.a),
                   "), ", Printable(operators.b), " alone nothing (", NameOf(guarantee.one.b),
                   guarantee.assumption.empty() ? "" : ": " + guarantee.assumption, ")\n",
                   "  if the two share what they see, which cannot be checked, they learn ",
                   guarantee.both, "\n");
  if (!guarantee.both_bounded.has_value()) return text;
  absl::StrAppend(&text, "  which tells no more than epsilon ", guarantee.both_bounded->epsilon,
                  " (proven); left ", LeftOf(outcome.ledger),
                  "\n  hidden: ", guarantee.both_bounded->neighbours, "\n");
  return text;
}

std::string ToText(const TwoServerOutcome& outcome, const TwoServerQueries& queries,
                   const TwoServerOptions& options) {
  return absl::StrCat(
      "\nquery ", Printable(outcome.target.name), "\n",
      MatchesText(outcome.result.matches, queries.client().parameters()), "  the nearest of ",
      outcome.result.candidates,
      options.mode == TwoServerMode::kScores
          ? " items, by scores"
          : absl::StrCat(" items of lists ", absl::StrJoin(outcome.lists, ", "), " of partition ",
                         options.partition),
      "\n", GuaranteeText(outcome, queries),
      absl::StrFormat("  %d bytes up, %d bytes down, of both servers together\n"
                      "  features %.1f ms, shares %.1f ms, answers %.1f ms\n",
                      outcome.bytes_up, outcome.bytes_down, outcome.target.features_ms,
                      outcome.release_ms, outcome.round_trip_ms));
}

}  // namespace

void AddTwoServerOptions(CLI::App* command, TwoServerFlags* flags) {
  AddSecondServer(command, "Two-server: ", &flags->second);
  AddChoice(command, "--mode", &flags->mode, kTwoServerModes,
            "Two-server: scores compares with every item, exactly; lists fetches the items of the "
            "nearest cells. auto: lists with --lists or --epsilon; else scores if both operators "
            "allow them and there are at most 100,000 items");
  command->add_option("--lists", flags->lists,
                      "Two-server: number of lists that mode lists fetches, at most 64; default 4, "
                      "or 1 with --epsilon, which more lists share");
  command->add_flag("--trust-again", flags->trust_again,
                    "Two-server: use the two servers although an answer of theirs was wrong");
}

absl::Status QueryTwoServers(const Context& context, const TwoServerQuery& query) {
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(query.targets));
  PM_ASSIGN_OR_RETURN(const Transport first, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const Transport second, ConnectSecond(context, query.flags.second));
  PM_ASSIGN_OR_RETURN(TwoServerQueries queries,
                      TwoServerQueries::Fetch({&first, &second}, SettingsOf(context),
                                              query.collection, query.flags.trust_again));
  std::vector<std::string> warnings;
  TwoServerOptions options = query.options;
  PM_RETURN_IF_ERROR(queries.Complete(query.flags.mode, query.flags.lists, &options));
  PM_RETURN_IF_ERROR(queries.CreateClient(options.mode, RecordAndWarn(&warnings)));
  const auto arrived = std::chrono::steady_clock::now();
  PM_RETURN_IF_ERROR(queries.client().CheckOptions(options));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadFeatures(query.targets, queries.client().parameters(), std::move(rows)));
  WaitForDeparture(query.targets, arrived);
  PM_ASSIGN_OR_RETURN(const std::vector<TwoServerOutcome> outcomes,
                      queries.Run(targets, options, RecordAndWarn(&warnings)));
  for (const TwoServerOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    Print({.json = OutcomeJson(outcome, queries, options, warnings),
           .text = ToText(outcome, queries, options)},
          context.json);
  }
  return FailureOf(AttemptsOf(outcomes), targets.size(), /*resend=*/"");
}

}  // namespace privatemail::client::cli

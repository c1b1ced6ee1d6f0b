#include "client/cli/query_encrypted.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/query_cells.h"
#include "client/flags/names.h"
#include "client/queries/filter_json.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

// A class's number or name; without classes any number that an item may have.
absl::StatusOr<int32_t> WantedLabel(const std::string& text, const PublicParameters& parameters) {
  if (parameters.HasClasses()) return LabelFrom(text, parameters);
  int32_t label = 0;
  if (absl::SimpleAtoi(text, &label) && label >= 0) return label;
  return absl::InvalidArgumentError(absl::StrCat(
      "--label must be a number from 0 on, since the collection has no classes, but is "
      "\"",
      text, "\""));
}

absl::StatusOr<std::vector<SearchTarget>> ToSearchTargets(const std::vector<NamedTarget>& targets,
                                                          const std::vector<std::string>& given,
                                                          const PublicParameters& parameters) {
  const std::vector<std::string> labels = LabelTexts(given);
  PM_RETURN_IF_ERROR(CheckLabelCount(labels.size(), targets.size()));
  std::vector<SearchTarget> wanted;
  for (size_t i = 0; i < targets.size(); ++i) {
    wanted.push_back({.features = targets[i].target.features});
    if (labels.empty()) continue;
    PM_ASSIGN_OR_RETURN(wanted.back().label,
                        WantedLabel(labels[labels.size() == 1 ? 0 : i], parameters));
  }
  return wanted;
}

std::vector<std::string> TablesOf(const SearchAnswer& answer) {
  std::vector<std::string> tables;
  for (const std::string& digest : answer.root_digests) tables.push_back(ToHex(digest));
  return tables;
}

std::string ToText(const SearchAnswer& answer, const NamedTarget& target, size_t index,
                   size_t targets, bool is_limited) {
  const EncryptedGuarantee& guarantee = answer.guarantee;
  const SearchBytes& bytes = answer.bytes;
  const std::vector<std::string> tables = TablesOf(answer);
  return absl::StrCat(
      "\nquery ", Printable(target.name), "\n",
      MatchesText(answer.matches[index], answer.parameters), "  the nearest of ",
      Counted(answer.items, "item"), " by ", NameOf(kMetricNames, answer.parameters.metric),
      is_limited ? ", limited by --label or --filter on this machine: the server does not see them"
                 : "",
      "\n  the server learns nothing of the target (", guarantee.kind, ", ", guarantee.bits,
      " bits: ", guarantee.assumption, "; ", guarantee.source, "); nothing was spent\n",
      "  row table ", absl::StrJoin(tables, ", "), ": compare it with other searchers\n",
      absl::StrFormat(
          "  %d bytes up, %d bytes down%s\n"
          "  besides: keys %d bytes up, row table %d and payloads %d bytes down\n"
          "  features %.1f ms, encryption %.1f ms, answer %.1f ms, decryption %.1f ms\n",
          bytes.queries, bytes.scores,
          targets == 1 ? "" : absl::StrCat(", for all ", targets, " targets"), bytes.keys,
          bytes.table, bytes.payloads, target.features_ms, answer.prepare_ms, answer.answer_ms,
          answer.finish_ms));
}

}  // namespace

nlohmann::json AnswerJson(const SearchAnswer& answer, const std::string& collection,
                          const std::vector<NamedTarget>& targets, size_t index,
                          const std::vector<std::string>& warnings) {
  const NamedTarget& target = targets[index];
  const SearchBytes& bytes = answer.bytes;
  nlohmann::json json = {{"query", target.name},
                         {"collection", collection},
                         {"scheme", "encrypted"},
                         {"metric", NameOf(kMetricNames, answer.parameters.metric)},
                         {"matches", ToJson(answer.matches[index])},
                         {"candidates", answer.items},
                         {"items_version", answer.items_version},
                         {"tables", TablesOf(answer)},
                         {"delta", answer.delta},
                         {"warnings", warnings},
                         {"guarantee", ToJson(answer.guarantee)},
                         {"targets", targets.size()},
                         {"bytes",
                          {{"up", bytes.queries},
                           {"down", bytes.scores},
                           {"keys", bytes.keys},
                           {"table", bytes.table},
                           {"payloads", bytes.payloads}}},
                         {"timings",
                          {{"features_ms", target.features_ms},
                           {"encryption_ms", answer.prepare_ms},
                           {"answer_ms", answer.answer_ms},
                           {"decryption_ms", answer.finish_ms}}}};
  if (target.row) json["row"] = *target.row;
  return json;
}

absl::Status QueryEncrypted(const Context& context, EncryptedQuery query) {
  TargetOptions& given = query.targets;
  if (!given.vectors_file.empty() && given.rows.empty()) {
    PM_ASSIGN_OR_RETURN(given.rows, RowSelection::Parse("--row", {"all"}));
  }
  EncryptedRanking ranking{.k = query.k, .with_payloads = query.with_payloads};
  PM_ASSIGN_OR_RETURN(ranking.filter, FilterFromJson(query.filter));
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(given, Metric::kDot));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const v1::GetCollectionResponse collection,
                      transport.GetCollection(query.collection));
  PM_ASSIGN_OR_RETURN(const EncryptedClient scheme, EncryptedClient::Create(collection));
  const auto arrived = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadFeatures(given, scheme.parameters(), std::move(rows)));
  PM_ASSIGN_OR_RETURN(const std::vector<SearchTarget> wanted,
                      ToSearchTargets(targets, given.labels, scheme.parameters()));
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<SearchClient> client,
                      SearchClient::Create(transport, SettingsOf(context)));
  WaitForDeparture(given, arrived);
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(const SearchAnswer answer,
                      client->Search(query.collection, wanted, ranking, RecordAndWarn(&warnings)));
  const bool is_limited = !given.labels.empty() || ranking.filter.has_value();
  for (size_t i = 0; i < targets.size(); ++i) {
    Print({.json = AnswerJson(answer, query.collection, targets, i, warnings),
           .text = ToText(answer, targets[i], i, targets.size(), is_limited)},
          context.json);
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client::cli

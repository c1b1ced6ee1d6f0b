// `privatemail explain` and `resend`: commands on the last release. Neither spends.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "client/cli/search_text.h"
#include "client/search/last_search.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/wire/proto_conversions.h"
#include "privatemail/search.h"

namespace privatemail::client::cli {
namespace {

struct ResendFlags {
  std::string collection;  // empty: any
  std::string label;
  TargetOptions target;
  std::optional<int64_t> k;
};

absl::StatusOr<Result> Explain(const Context& context, const std::string&) {
  PM_ASSIGN_OR_RETURN(const std::string text, SearchClient::Explain(context.state_folder));
  Result result{.json = nlohmann::json::parse(text),
                .head =
                    "This was prepared for the server, and nothing else; delivery is not "
                    "recorded."};
  for (const auto& [key, value] : result.json.items()) {
    const bool is_digest = key == "digest" || key == "keys_digest" || key == "tables";
    if (!is_digest && key != "delta" && key != "rows") result.brief.push_back(key);
  }
  if (!context.verbose) result.hint = "-v shows digests, too.";
  if (const auto rows = result.json.find("rows"); rows != result.json.end()) {
    result.head = absl::StrCat("A matrix of ", rows->size(), " rows. ", result.head);
    if (!context.verbose) result.hint = "-v shows the rows, and digests.";
  }
  return result;
}

// The target, which no saved file names, and its label.
absl::StatusOr<SearchTarget> ReadTarget(const ResendFlags& flags,
                                        const PublicParameters& parameters) {
  SearchTarget target;
  const TargetOptions& given = flags.target;
  if (!given.vectors_file.empty() || !given.images.empty() || !given.rows.empty()) {
    PM_ASSIGN_OR_RETURN(std::vector<QueryTarget> rows, ReadRows(given));
    PM_ASSIGN_OR_RETURN(const std::vector<QueryTarget> targets,
                        ReadTargets(given, parameters, std::move(rows)));
    if (targets.size() != 1) {
      return FieldError("row", "one target of --row or --image", absl::StrCat(targets.size()));
    }
    target = targets.front().target;
  }
  if (!flags.label.empty()) {
    target.label_text = LabelTexts({flags.label}).front();
  }
  return target;
}

absl::StatusOr<Result> Resend(const Context& context, const ResendFlags& flags) {
  PM_ASSIGN_OR_RETURN(const LastSearch last,
                      LoadLastRelease(context.state_folder, flags.collection));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  PM_ASSIGN_OR_RETURN(const SearchTarget target, ReadTarget(flags, parameters));
  PM_ASSIGN_OR_RETURN(std::unique_ptr<SearchClient> client, SearchClient::Connect(context));
  const absl::StatusOr<SearchResponse> sent =
      client->Resend(target, flags.k, last.collection.name());
  client.reset();  // as `query` does
  PM_ASSIGN_OR_RETURN(const SearchResponse response, sent);
  nlohmann::json json = ToJson(response, last.collection.name(), 0);
  json["spent"] = ToJson(Budget{});
  const std::string text =
      absl::StrCat("the last release again, to the collection ", Printable(last.collection.name()),
                   " by ", NameOf(last.scheme), ", read for ",
                   target.name.empty() ? "the label" : Printable(target.name), "\n",
                   MatchesText(json, parameters.metric), CostText({json}));
  return Result{.json = std::move(json), .text = text, .columns = kMatchColumns};
}

}  // namespace

void AddReplayCommands(CLI::App& app, Context& context) {
  AddCommand(app, context, "explain",
             "Show the last search as prepared for the server, row by row or cell by cell",
             &Explain);
  const auto [resend, flags] = AddCommand(
      app, context, "resend",
      "Send the last release again, at no cost, and print the matches of one label, of the "
      "labels that fit the target or, for cells, the items nearest to it",
      &Resend);
  resend->add_option("NAME", flags->collection,
                     "The collection that the last release was for; others are refused");
  resend->add_option("--label", flags->label,
                     "Joint: the label whose matches to print, - from standard input; not sent");
  AddFeatureOptions(resend, &flags->target);
  resend->add_option(
      "-k", flags->k,
      absl::StrCat("Number of matches; if absent as before, for cells ", SearchRequest().k));
}

}  // namespace privatemail::client::cli

#include "client/queries/replay.h"

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/collection.h"
#include "client/cli/command.h"
#include "client/cli/query_cells.h"
#include "client/cli/query_targets.h"
#include "client/queries/cell_queries.h"
#include "client/queries/filter_json.h"
#include "client/queries/last_release.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/public_parameters.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/cell_client.h"
#include "privatemail/joint_client.h"

// `privatemail explain` and `resend`: commands on the last release. Neither spends.

namespace privatemail::client::cli {
namespace {

struct ResendOptions {
  std::string label;
  TargetOptions target;
  std::optional<int64_t> k;
};

constexpr char kPrepared[] =
    " bytes and nothing else (saved before sending; delivery is not recorded):\n";

constexpr char kNoCiphertextsSaved[] =
    "the ciphertexts, the session's secret key, and everything that was decrypted";

std::string RowName(const PublicParameters& parameters, int64_t row) {
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  return row < slots ? absl::StrCat("slot ", row, " (", parameters.ClassName(row), ")")
                     : absl::StrCat("anchor ", row - slots);
}

std::string ReleaseForm(const LastRelease& last) {
  return last.request.post_processing_steps() == 0 ? "finished coordinates" : "the noisy iteration";
}

std::string ToText(const LastRelease& last, const PublicParameters& parameters,
                   const FloatMatrix& release) {
  const v1::RetrieveRequest& request = last.request;
  std::ostringstream text;
  text << absl::StrCat(
      "Prepared for the server, ", request.ByteSizeLong(), kPrepared, "  collection   ",
      Printable(request.collection()), "\n  digest       ",
      absl::BytesToHexString(request.fingerprint()), "\n  matches      ", request.k(),
      " for every slot\n  payloads     ", request.with_payloads() ? "for every slot" : "for none",
      "\n  filter       ",
      request.has_filter() ? Line(FilterToJson(request.filter())) + ", in clear" : "none",
      "\n  release      ", release.rows(), " x ", release.cols(), ", ", ReleaseForm(last), ":\n");
  for (Eigen::Index i = 0; i < release.rows(); ++i) {
    text << absl::StreamFormat("    %-36s", Printable(RowName(parameters, i))) << release.row(i)
         << "\n";
  }
  return text.str();
}

std::string ToText(const v1::RetrieveCellsRequest& request, int64_t of_cells) {
  std::string text = absl::StrCat(
      "Prepared for the server, ", request.ByteSizeLong(), kPrepared, "  collection   ",
      Printable(request.collection()), "\n  digest       ",
      absl::BytesToHexString(request.fingerprint()), "\n  partition    ", request.partition(),
      ", of ", of_cells, " cells\n  cells        ", absl::StrJoin(request.cells(), ", "),
      "\n  epsilon      ", request.epsilon(), ", with which they were chosen\n  items        ",
      request.items(), " in all\n  payloads     ",
      request.with_payloads() ? "for every item" : "for none", "\n");
  if (request.embedding_version() != 0) {
    absl::StrAppend(&text, "  embedding    ", request.embedding_version(), " or a later one\n");
  }
  return text;
}

absl::StatusOr<Result> ExplainCells(const v1::RetrieveCellsRequest& request,
                                    const PublicParameters& parameters) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", request.partition(), 0,
                                         std::ssize(parameters.cell_partitions) - 1));
  const int64_t of = parameters.cell_partitions[request.partition()].cells;
  nlohmann::json answer = {
      {"collection", request.collection()},
      {"digest", absl::BytesToHexString(request.fingerprint())},
      {"scheme", NameOf(Scheme::kCells)},
      {"partition", request.partition()},
      {"of_cells", of},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"epsilon", request.epsilon()},
      {"items", request.items()},
      {"with_payloads", request.with_payloads()},
      {"bytes", request.ByteSizeLong()}};
  if (request.embedding_version() != 0) answer["embedding_version"] = request.embedding_version();
  return Result{.json = answer, .text = ToText(request, of)};
}

// view: as SearchClient saves it, in a file with a checksum.
Result ExplainEncrypted(nlohmann::json view) {
  const auto number = [&view](const char* field) { return view[field].get<uint64_t>(); };
  const auto tables = view["tables"].get<std::vector<std::string>>();
  std::string text = absl::StrCat(
      "Prepared for the server (delivery is not recorded). Not saved: ", kNoCiphertextsSaved,
      "\n  collection   ", Printable(view["collection"].get<std::string>()), "\n  digest       ",
      view["digest"].get<std::string>(), "\n  queries      ", number("queries"), " in ",
      Counted(number("messages"), "message"), " of ", number("bytes"),
      " bytes: ring-LWE ciphertexts, which tell nothing of the targets\n  delta        ",
      number("delta"), "\n  keys         ", view["keys_digest"].get<std::string>(), ", ",
      number("keys_bytes"), " bytes, sent once a session\n  row table    ",
      tables.empty() ? "no answer yet" : absl::StrJoin(tables, ", "),
      "; known before: ", Counted(number("known_blocks"), "block"), "\n  payloads     ",
      view["with_payloads"].get<bool>()
          ? absl::StrCat("for every item; known before: ",
                         Counted(number("known_payload_blocks"), "block"))
          : "for none",
      "\n");
  view["not_saved"] = kNoCiphertextsSaved;
  return {.json = std::move(view), .text = std::move(text)};
}

absl::StatusOr<Result> Explain(const Context& context, const std::string&) {
  PM_ASSIGN_OR_RETURN(const LastRelease last, LoadLastSearch(context.state_folder));
  if (last.scheme == Scheme::kEncrypted) return ExplainEncrypted(nlohmann::json::parse(last.view));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  if (last.scheme == Scheme::kCells) return ExplainCells(last.cells, parameters);
  PM_ASSIGN_OR_RETURN(const FloatMatrix release, FromProto("release", last.request.release()));
  nlohmann::json rows = nlohmann::json::array();
  for (Eigen::Index i = 0; i < release.rows(); ++i) {
    rows.push_back({{"row", RowName(parameters, i)},
                    {"values", std::vector<float>(release.row(i).data(),
                                                  release.row(i).data() + release.cols())}});
  }
  return Result{.json = {{"collection", last.request.collection()},
                         {"digest", absl::BytesToHexString(last.request.fingerprint())},
                         {"scheme", NameOf(last.scheme)},
                         {"k", last.request.k()},
                         {"post_processing_steps", last.request.post_processing_steps()},
                         {"with_payloads", last.request.with_payloads()},
                         {"filter", last.request.has_filter() ? FilterToJson(last.request.filter())
                                                              : nullptr},
                         {"bytes", last.request.ByteSizeLong()},
                         {"rows", rows}},
                .text = ToText(last, parameters, release)};
}

bool HasTarget(const TargetOptions& target) {
  return !target.vectors_file.empty() || !target.rows.empty() || !target.images.empty() ||
         !target.own_anchors_file.empty();
}

absl::StatusOr<Result> ResendJoint(const Context& context, const LastRelease& last,
                                   const ResendOptions& options) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  PM_ASSIGN_OR_RETURN(const int32_t label,
                      LabelFrom(LabelTexts({options.label}).front(), parameters));
  PM_ASSIGN_OR_RETURN(const int64_t slot, parameters.SlotOf(label));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  // Repeated rows tell the server nothing new, so nothing is charged.
  PM_ASSIGN_OR_RETURN(const QueryResult result,
                      client::ResendJoint(transport, SettingsOf(context), last, label, options.k));
  std::string text = absl::StrCat("collection ", Printable(last.request.collection()), "   class ",
                                  Printable(parameters.ClassName(slot)), "\n");
  for (size_t i = 0; i < result.matches.size(); ++i) {
    absl::StrAppendFormat(&text, "%4d  %s\n", i + 1, Printable(result.matches[i].id));
  }
  text += "  spent nothing: the rows of the last release were sent again\n";
  return Result{.json = {{"collection", last.request.collection()},
                         {"scheme", NameOf(last.scheme)},
                         {"label", label},
                         {"class", parameters.ClassName(slot)},
                         {"matches", ToJson(result.matches)},
                         {"truncated", result.truncated},
                         {"spent", ToJson(Budget{})},
                         {"alignment", {{"relative_residual", result.relative_residual}}},
                         {"embedding_version", result.embedding_version}},
                .text = text};
}

// The caller gives the target again: no saved file names it.
absl::StatusOr<Result> ResendCells(const Context& context, const LastRelease& last,
                                   const ResendOptions& options) {
  const v1::RetrieveCellsRequest& request = last.cells;
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, FromProto(last.collection.parameters()));
  if (!options.label.empty() && !parameters.SendsCoordinates()) {
    return absl::InvalidArgumentError(
        "--label cannot be used: the last release asked for cells; give its target, with --vectors "
        "and --row or with --image");
  }
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(options.target, Metric::kCosine));
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> targets,
                      ReadFeatures(options.target, parameters, std::move(rows)));
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("number of targets of --row or --image", std::ssize(targets), 1, 1));
  NamedTarget& given = targets.front();
  given.guessed = options.label.empty();
  if (!given.guessed) {
    PM_ASSIGN_OR_RETURN(given.target.label,
                        LabelFrom(LabelTexts({options.label}).front(), parameters));
  }
  PM_ASSIGN_OR_RETURN(const auto own_anchors, ReadOwnAnchors(options.target));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const RankedItems ranked,
                      client::ResendCells(transport, SettingsOf(context), last, given,
                                          options.k.value_or(kDefaultMatches), own_anchors));
  const auto& [target, result] = ranked;
  nlohmann::json answer = {
      {"collection", request.collection()},
      {"scheme", "cells"},
      {"cells", std::vector<uint32_t>(request.cells().begin(), request.cells().end())},
      {"matches", ToJson(result.matches)},
      {"candidates", result.candidates},
      {"spent", ToJson(Budget{})},
      {"items_version", result.items_version}};
  AddPlaceJson(target, given.guessed, &answer);
  return Result{
      .json = answer,
      .text = absl::StrCat(
          "collection ", Printable(request.collection()), "\n",
          MatchesText(result.matches, parameters), PlaceText(target, given.guessed, parameters),
          "  the nearest of ", result.candidates,
          " returned items; spent nothing: the bytes of the last release were sent again\n")};
}

absl::StatusOr<Result> Resend(const Context& context, const ResendOptions& options) {
  PM_ASSIGN_OR_RETURN(const LastRelease last, LoadLastRelease(context.state_folder));
  if (last.scheme == Scheme::kCells) return ResendCells(context, last, options);
  if (!HasTarget(options.target)) {
    if (!options.label.empty()) return ResendJoint(context, last, options);
    return absl::InvalidArgumentError("--label must be given, but is not");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--vectors, --row, --image and --own-anchors cannot be used: the last release was of the ",
      NameOf(last.scheme), " scheme; give --label"));
}

void AddResend(CLI::App& app, Context& context) {
  auto options = std::make_shared<ResendOptions>();
  CLI::App* resend = AddCommand(app, "resend",
                                "Send the last release again, at no cost, and print the matches of "
                                "one class or, for cells, the items nearest to the target");
  resend->add_option("--label", options->label,
                     "Joint: the class whose matches to print, - from standard input; "
                     "not sent. Cells with --cell-code none: the target's class, guessed "
                     "if absent");
  AddFeatureOptions(resend, &options->target);
  AddOwnAnchorsOption(resend, &options->target);
  resend->add_option(
      "-k", options->k,
      absl::StrCat("Number of matches; if absent as before, for cells ", kDefaultMatches));
  SetRun(resend, context, options, &Resend);
}

}  // namespace

void AddReplayCommands(CLI::App& app, Context& context) {
  SetRun(AddCommand(app, "explain",
                    "Show the last release as prepared for the server, row by row or cell by "
                    "cell"),
         context, std::make_shared<std::string>(), &Explain);
  AddResend(app, context);
}

}  // namespace privatemail::client::cli

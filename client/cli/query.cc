#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/cli/images.h"
#include "client/cli/plan.h"
#include "client/cli/query_targets.h"
#include "client/cli/report.h"
#include "client/cli/search_text.h"
#include "client/files/private_file.h"
#include "client/schemes/class_labels.h"
#include "client/schemes/request_checks.h"
#include "client/search/charge_text.h"
#include "client/search/result_json.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/offered_schemes.h"
#include "common/features/vector_file.h"
#include "common/items/payload_filter.h"
#include "privatemail/search.h"

namespace privatemail::client::cli {
namespace {

const std::map<std::string, PostProcessing> kPostProcessingNames = {
    {"client", PostProcessing::kClient}, {"server", PostProcessing::kServer}};

struct QueryFlags {
  SearchRequest request;
  TargetOptions targets;
  std::string plan_file;
  std::optional<std::string> mechanism;
  std::string classes;  // a number or auto
  std::string dummies_file;
  std::string dummy_labels_file;
  std::string compare_images;
  std::string report_file;
  bool yes = false;
};

// Adds what files and texts hold to the request, but for the labels of dummies, which may be names.
absl::StatusOr<SearchRequest> ReadRequest(const QueryFlags& flags, LabelColumn* dummy_labels) {
  SearchRequest request = flags.request;
  if (flags.mechanism.has_value()) {
    PM_ASSIGN_OR_RETURN(request.mechanism, MechanismFromName(*flags.mechanism));
  }
  if (int64_t classes = 0; !flags.classes.empty()) {
    if (flags.classes != "auto" && !(absl::SimpleAtoi(flags.classes, &classes) && classes >= 1)) {
      return FieldError("classes", "auto or a number of labels",
                        absl::StrCat("\"", flags.classes, "\""));
    }
    if (classes > 0) request.classes = classes;  // auto: as if absent
  }
  if (!flags.dummies_file.empty()) {
    PM_ASSIGN_OR_RETURN(request.dummies.emplace().features, ReadVectors(flags.dummies_file));
    PM_ASSIGN_OR_RETURN(*dummy_labels,
                        ReadLabels(flags.dummy_labels_file, request.dummies->features.rows()));
  }
  PM_ASSIGN_OR_RETURN(request.own_anchors, ReadOwnAnchors(flags.targets));
  if (!flags.report_file.empty() || !flags.compare_images.empty()) request.with_alignment = true;
  if (!flags.plan_file.empty()) PM_RETURN_IF_ERROR(ReadPlan(flags.plan_file, &request));
  return request;
}

// Every row of a file would be charged for.
absl::Status CheckRowsChosen(const QueryFlags& flags, Scheme scheme) {
  if (scheme == Scheme::kEncrypted || flags.targets.vectors_file.empty() ||
      !flags.targets.rows.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--vectors needs rows: give --row I, --rows I,J,... or --rows all");
}

// On a terminal the user decides.
absl::Status Confirm(const std::string& charge) {
  Warn(charge);
  if (::isatty(STDIN_FILENO) == 0) return absl::OkStatus();
  std::cerr << "Go on (--yes answers this)? [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  if (absl::EqualsIgnoreCase(answer, "y") || absl::EqualsIgnoreCase(answer, "yes")) {
    return absl::OkStatus();
  }
  return absl::CancelledError("nothing was charged or sent");
}

absl::Status Query(Context& context, const QueryFlags& flags) {
  LabelColumn dummy_labels;
  PM_ASSIGN_OR_RETURN(SearchRequest request, ReadRequest(flags, &dummy_labels));
  PM_ASSIGN_OR_RETURN(std::vector<QueryTarget> rows, ReadRows(flags.targets));
  for (const QueryTarget& row : rows) request.targets.push_back(row.target);
  PM_RETURN_IF_ERROR(CheckTargetValues(request));
  std::unique_ptr<PrivateFile> report_file;
  if (!flags.report_file.empty()) {
    PM_ASSIGN_OR_RETURN(report_file, PrivateFile::Create("--report", flags.report_file));
  }
  PM_ASSIGN_OR_RETURN(std::unique_ptr<SearchClient> client, SearchClient::Connect(context));
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, client->Describe(request.collection));
  const auto arrived = std::chrono::steady_clock::now();
  const Scheme scheme = request.scheme.value_or(DefaultScheme(OfferedSchemes(parameters)));
  PM_RETURN_IF_ERROR(CheckRowsChosen(flags, scheme));
  if (scheme != Scheme::kJoint && !flags.compare_images.empty()) {
    return InvalidField("compare_images",
                        absl::StrCat("does not apply to the scheme ", NameOf(scheme)));
  }
  PM_ASSIGN_OR_RETURN(std::vector<QueryTarget> targets,
                      ReadTargets(flags.targets, parameters, std::move(rows)));
  PM_RETURN_IF_ERROR(AddLabels(flags.targets, &targets));
  if (request.dummies.has_value()) {
    PM_ASSIGN_OR_RETURN(NamedLabels named, LabelsOfItems("--dummy-labels", dummy_labels, parameters,
                                                         /*has_items=*/true));
    request.dummies->labels = std::move(named.labels);
  }
  request.fingerprint = Fingerprint(parameters);  // what follows was made for these
  request.targets.clear();
  for (const QueryTarget& target : targets) request.targets.push_back(target.target);
  std::optional<LocalGallery> gallery;
  if (!flags.compare_images.empty()) {
    ExtractorOptions extractor = flags.targets.extractor;
    extractor.collection = parameters.extractor;
    PM_ASSIGN_OR_RETURN(gallery, LocalGallery::Create(flags.compare_images, extractor));
  }
  WaitForDeparture(flags.targets, arrived);
  ProgressBar bar("queries sent");
  const auto warn = [&](const std::string& text) {
    bar.End();
    Warn(text);
  };
  const auto show = [&](int64_t sent) { bar.Show(sent, std::ssize(targets)); };
  const absl::StatusOr<SearchResponse> searched =
      client->Search(request, warn, show, flags.yes ? nullptr : ConfirmFunction(Confirm));
  bar.End();
  // The connection ends at a departure, before anything is shown: printing takes a time of its own
  // for every match, and a reader may stop it.
  client.reset();
  PM_ASSIGN_OR_RETURN(const SearchResponse response, searched);
  std::vector<ReportQuery> reports;
  std::vector<nlohmann::json> answered;
  for (size_t i = 0; i < response.results.size(); ++i) {
    if (!response.results[i].status.ok()) continue;
    nlohmann::json json = ToJson(response, request.collection, i);
    json["timings"]["features_ms"] = targets[i].features_ms;
    if (targets[i].row.has_value()) json["row"] = *targets[i].row;
    if (response.scheme == Scheme::kJoint) {
      reports.push_back(ToReport(response, i, targets[i], gallery, json));
      json["non_private_matches"] = ComparedJson(reports.back());
    }
    std::string text = MatchesText(json, parameters.metric);
    if (response.results.size() > 1) {
      text = absl::StrCat(
          targets[i].row.has_value() ? absl::StrCat("row ", *targets[i].row) : targets[i].image,
          ":\n", text, "\n");
    }
    answered.push_back(json);
    Print({.json = std::move(json), .text = std::move(text), .columns = kMatchColumns},
          context.json, context.verbose);
  }
  if (!context.json && !context.verbose && !answered.empty()) std::cout << CostText(answered);
  if (report_file != nullptr && !reports.empty()) {
    PM_RETURN_IF_ERROR(WriteReport(reports, report_file.get()));
    if (!context.json) {
      std::cout << "\nreport: " << std::filesystem::absolute(flags.report_file).string() << "\n";
    }
  }
  if (response.has_unknown_name) context.exit_code = kExitPartly;
  return response.status;
}

// Mechanism and privacy cost.
void AddReleaseOptions(CLI::App* query, QueryFlags* flags) {
  SearchRequest& request = flags->request;
  query->add_option("--epsilon", request.epsilon,
                    "Joint, cells: privacy budget that each query spends. Required without --plan");
  query->add_option("--delta", request.delta, "Joint: spent likewise, for the Gaussian mechanisms");
  query->add_option("--mechanism", flags->mechanism,
                    absl::StrCat("Joint, gaussian if absent: ", MechanismNames(),
                                 "; published-... is no proven guarantee"));
  query->add_option("--radius", request.radius,
                    "Inference Privacy (lap-output, gauss-output, gauss-input): hides the features "
                    "among all within this distance, not the label. The answer says how many pairs "
                    "of anchors are within it");
  query->add_option("--private-iterations", request.private_iterations,
                    "Joint: number of iterations on the target, with noise after each; 1 if "
                    "absent");
  AddChoice(query, "--post-process", &request.post_process, kPostProcessingNames,
            "Joint: the party that runs the iterations after the noise, client if absent");
  CLI::Option* dummies = query->add_option(
      "--dummies", flags->dummies_file,
      "Joint: public vectors of your own to draw dummies from; the anchors if absent. Epsilon "
      "protects the target, not these; not with gauss-input");
  query->add_option("--dummy-labels", flags->dummy_labels_file, "Their labels")->needs(dummies);
  dummies->needs("--dummy-labels");
  query->add_option(
      "--classes", flags->classes,
      "Joint, without --label: the number of labels whose matches fill -k, those that fit the "
      "anchors best. auto, as if absent, takes one label if it is sure, more if not. The server "
      "sends matches of every label anyway, so this costs nothing and it learns nothing");
}

void AddCellsOptions(CLI::App* query, QueryFlags* flags) {
  SearchRequest& request = flags->request;
  query->add_option("--partition", request.partition,
                    "Cells: index of the collection's partition of the anchors, from 0; 0 if "
                    "absent");
  query->add_option("--ask", request.ask,
                    "Cells: number of cells in each request, which the server sees; 1 if absent");
  query->add_option("--focus", request.focus,
                    "Cells: number of cells nearest to the query that the choice prefers; 1 if "
                    "absent");
  query->add_option("--items", request.items,
                    "Cells: number of items to fetch, of which the nearest are printed; if absent "
                    "by the published quality");
  query
      ->add_option("--plan", flags->plan_file,
                   "File of `privatemail plan --out`: scheme cells with the plan's settings and "
                   "epsilon")
      ->excludes("--scheme", "--epsilon", "--partition", "--ask", "--focus", "--items");
}

}  // namespace

void AddQueryCommand(CLI::App& app, Context& context) {
  const auto [query, flags] = AddCommand(
      app, context, "query",
      "Find the items nearest to a private target, which the server does not learn", &Query);
  SearchRequest& request = flags->request;
  request.with_payloads = false;
  query->add_option("NAME", request.collection, "The collection")->required();
  AddChoice(
      query, "--scheme", &request.scheme, kSchemeNames,
      "By default the first of encrypted, joint and cells that the collection offers. "
      "encrypted: exact, the server computes on ciphertexts and learns "
      "nothing; without noise or budget. joint: noise on an embedding; finds items of its label. "
      "cells: a noisy choice of cells, whose items are ranked locally; needs a collection "
      "with cells");
  AddTargetOptions(query, &flags->targets);
  query->add_option("-k", request.k, "Number of matches")->capture_default_str();
  AddReleaseOptions(query, flags);
  AddCellsOptions(query, flags);
  query->add_flag("--payloads", *request.with_payloads,
                  "Show payloads. They are fetched of every slot or item");
  query->add_flag("--yes", flags->yes,
                  absl::StrCat("Spend more than epsilon ", kAskedEpsilon, " without a question"));
  query->add_flag(kAcceptMisalignmentFlag, request.accept_misalignment,
                  "Joint: query although public data alone shows that the answer will hardly be of "
                  "the target's label");
  query->add_option(
      "--filter", request.filter,
      absl::StrCat("Only items whose payload matches; joint: SENT IN CLEAR. Encrypted: "
                   "applied on this machine, the server does not see it. Joint: the "
                   "server learns the filter, and epsilon does not cover it; it must "
                   "not depend on the target: ",
                   kFilterForm));
  query->add_option(
      "--compare-images", flags->compare_images,
      "Joint: the gallery's pictures on this machine, to show the matches of a search without "
      "privacy");
  AddFeaturesFolderOption(query, &flags->targets.extractor);
  query->add_option("--report", flags->report_file,
                    "Joint: write an HTML report with pictures and plots");
  MarkRare(query, {"--labels", "--items", "--plan", "--yes", "--mechanism", "--radius",
                   "--private-iterations", "--post-process", "--dummies", "--dummy-labels",
                   "--classes", "--partition", "--ask", "--focus", "--own-anchors",
                   "--compare-images", "--features-folder", "--report", kAcceptMisalignmentFlag});
  query->footer(absl::StrCat(
      "Choose -k, --scheme, --epsilon, --delta, --mechanism, --radius and the number of cells or "
      "items without regard to the target, as --filter: the server sees them, or can tell them "
      "from the noise.\n",
      "Joint finds items of a label, in no useful order: their distances are of the server's "
      "embedding and compare within one answer only. Encrypted and cells find the nearest.\n",
      "Encrypted: --label and --filter choose among the matches on this machine, and the server "
      "does not see them. Without --row all rows of --vectors are searched for. What you do with a "
      "match, such as opening it at the operator's site, is seen by the site that serves it.\n",
      "Exit code 3: the collection lacks the --label or a path of the --filter of an encrypted "
      "query, which is sent all the same, so that the server learns nothing of them. From a script "
      "that then sends no other it would.\n",
      "In JSON, `squared_distance` of a match is the squared Euclidean distance.\n",
      query->get_footer()));
}

}  // namespace privatemail::client::cli

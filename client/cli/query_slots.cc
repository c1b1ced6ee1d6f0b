#include "client/cli/query_slots.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/filter_json.h"
#include "client/cli/images.h"
#include "client/cli/last_release.h"
#include "client/cli/private_file.h"
#include "client/cli/query_batch.h"
#include "client/cli/report.h"
#include "client/privacy/accounting/composition.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"
#include "common/wire/codec.h"
#include "privatemail/anchored_client.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::cli {
namespace {

struct SlotsOutcome : Attempt {
  std::string class_name;
  PreparedQuery prepared;
  v1::RetrieveResponse response;
  QueryResult result;                         // once finished
  std::optional<RadiusStats> radius_meaning;  // with --radius: its meaning on the collection

  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const { return std::max(0.0, round_trip_ms - server_ms()); }
};

template <typename Client>
absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> CreateSlotClient(
    const v1::GetCollectionResponse& collection, const std::vector<v1::GetAnchorsResponse>& anchors,
    const std::optional<Anchors>& dummies) {
  PM_ASSIGN_OR_RETURN(Client client, Client::Create(collection, anchors, dummies));
  return std::make_unique<const Client>(std::move(client));
}

absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> CreateClient(
    const Transport& transport, const SlotsQuery& options, v1::GetCollectionResponse* collection) {
  PM_ASSIGN_OR_RETURN(*collection, transport.GetCollection(options.collection));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      transport.GetAnchors(options.collection, collection->fingerprint()));
  std::optional<Anchors> dummies;
  if (!options.dummies_file.empty()) {
    dummies.emplace();
    PM_ASSIGN_OR_RETURN(dummies->features, ReadVectors(options.dummies_file));
    PM_ASSIGN_OR_RETURN(dummies->labels, ReadLabels(options.dummy_labels_file));
  }
  return options.scheme == Scheme::kAnchored
             ? CreateSlotClient<AnchoredClient>(*collection, anchors, dummies)
             : CreateSlotClient<JointClient>(*collection, anchors, dummies);
}

absl::Status CheckOptions(const SlotsQuery& options) {
  if (options.post_process != "client" && options.post_process != "server") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--post-process must be client or server, but is \"", options.post_process, "\""));
  }
  if (options.dummies_file.empty() != options.dummy_labels_file.empty()) {
    return absl::InvalidArgumentError("give --dummies and --dummy-labels together");
  }
  return absl::OkStatus();
}

// 0 for auto.
absl::StatusOr<int64_t> ClassesFrom(const std::string& text) {
  int64_t classes = 0;
  if (text == "auto" || (absl::SimpleAtoi(text, &classes) && classes >= 1)) return classes;
  return absl::InvalidArgumentError(
      absl::StrCat("--classes must be auto or a number of classes, but is \"", text, "\""));
}

absl::StatusOr<std::optional<LocalGallery>> OpenGallery(const SlotsQuery& options,
                                                        const PublicParameters& parameters) {
  if (options.compare_images.empty()) return std::nullopt;
  ExtractorOptions extractor = options.targets.extractor;
  extractor.collection = parameters.extractor;
  return LocalGallery::Create(options.compare_images, extractor);
}

absl::StatusOr<std::optional<PrivateFile>> OpenReport(const SlotsQuery& options) {
  if (options.report_file.empty()) return std::nullopt;
  return PrivateFile::Create("--report", options.report_file);
}

// If the mechanism does not hide the class, a class guessed from the features would leak them.
absl::Status CheckLabelsAreGiven(const SlotsQuery& options,
                                 const std::vector<NamedTarget>& targets) {
  const MechanismTraits& traits = TraitsOf(options.query.cost.mechanism);
  const bool guessed = std::any_of(targets.begin(), targets.end(),
                                   [](const NamedTarget& target) { return target.guessed; });
  if (traits.protects == MechanismTraits::Protects::kValue || !guessed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--label must be given with ", traits.name,
      ", which does not hide the class: a class guessed from the features would reveal them"));
}

// The delta that one query spends. A pure law spends some only over several iterations.
absl::StatusOr<double> DeltaOf(const PrivacyCost& cost) {
  const double given = std::isnan(cost.delta) ? 0 : cost.delta;
  if (TraitsOf(cost.mechanism).TakesDelta()) return given;
  if (cost.private_iterations == 1) return 0;
  PM_ASSIGN_OR_RETURN(const EpsilonShare share,
                      EpsilonPerRelease(cost.epsilon, given, cost.private_iterations));
  return share.delta;
}

std::vector<std::string> WarningsAbout(const SlotsQuery& options,
                                       const v1::GetCollectionResponse& collection) {
  std::vector<std::string> warnings;
  if (collection.changes_since_embedding() > 0) {
    warnings.push_back(absl::StrCat(
        collection.embedded_items(), " items are searchable, ", collection.items(),
        " are stored, and ", Counted(collection.changes_since_embedding(), "change"),
        " since the last build may be missing, except for deletions: `privatemail build ",
        collection.name(), "` (write access) includes them"));
  }
  if (options.query.filter) {
    warnings.emplace_back(
        "the server reads --filter in clear, and the guarantee does not cover it: a filter that "
        "depends on the target reveals it");
  }
  return warnings;
}

// Fills options->query from the options that are texts, optional numbers and files.
absl::Status ParseTexts(SlotsQuery* options) {
  PM_RETURN_IF_ERROR(CheckOptions(*options));
  PrivacyCost& cost = options->query.cost;
  PM_ASSIGN_OR_RETURN(cost.mechanism, MechanismFromName(options->mechanism));
  PM_RETURN_IF_ERROR(CopyNumber("delta", options->delta, &cost.delta));
  PM_RETURN_IF_ERROR(CopyNumber("radius", options->radius, &cost.radius));
  if (options->post_process == "server") options->query.post_processing = PostProcessing::kServer;
  options->query.with_alignment = !options->report_file.empty();
  PM_ASSIGN_OR_RETURN(options->query.filter, FilterFromJson(options->filter));
  return absl::OkStatus();
}

absl::Status Release(const SlotSchemeClient& client, Ledger& ledger, const QueryOptions& options,
                     SlotsOutcome* outcome) {
  const PublicParameters& parameters = client.parameters();
  const Target& target = outcome->target.target;
  outcome->class_name = parameters.ClassName(*parameters.SlotOf(target.label));
  const auto prepare = [&](BitSource& bits) {
    return client.Prepare(target, options, ledger, bits);
  };
  return ChargeAndPrepare(parameters.collection_uuid, ledger, prepare, outcome);
}

// Saves the request first, so that `explain` shows it even if no answer comes.
absl::Status Send(const Context& context, const Transport& transport, Scheme scheme,
                  const v1::GetCollectionResponse& collection, SlotsOutcome* outcome) {
  const v1::RetrieveRequest& request = outcome->prepared.request;
  PM_RETURN_IF_ERROR(SaveLastRelease(
      context.state_folder, {.scheme = scheme, .collection = collection, .request = request}));
  outcome->saved = true;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->response, transport.Retrieve(request));
  outcome->round_trip_ms = MillisecondsSince(start);
  return absl::OkStatus();
}

std::vector<std::string> Facts(const SlotsOutcome& outcome) {
  const QueryState& state = outcome.prepared.state;
  std::vector<std::string> facts = {
      absl::StrFormat("spent epsilon %g, delta %g (%s); left %s", state.guarantee.epsilon,
                      state.guarantee.delta,
                      state.guarantee.proven ? "proven" : "as published, NOT a proven guarantee",
                      LeftOf(outcome.ledger)),
      absl::StrCat("hidden: ", state.guarantee.neighbours,
                   state.guarantee.radius.has_value()
                       ? absl::StrCat(" (radius ", *state.guarantee.radius, ")")
                       : ""),
      absl::StrFormat("%d bytes up, %d bytes down", outcome.prepared.request.ByteSizeLong(),
                      outcome.response.ByteSizeLong()),
      absl::StrFormat("features %.1f ms, release %.1f ms, network %.1f ms, server %.1f ms",
                      outcome.target.features_ms, outcome.release_ms, outcome.network_ms(),
                      outcome.server_ms()),
      absl::StrFormat("alignment residual %.3g (0 is a perfect fit, 1 none)",
                      outcome.result.relative_residual)};
  if (outcome.radius_meaning.has_value()) {
    facts.insert(facts.begin() + 2,
                 absl::StrCat("of the anchors ", outcome.radius_meaning->ToString()));
  }
  return facts;
}

void AddClouds(const SlotsOutcome& outcome, const SlotSchemeClient& client, ReportQuery* report) {
  const auto coordinates = client.Coordinates(outcome.prepared.request);
  const auto server = FromProto("server_anchors", outcome.response.alignment().server_anchors());
  if (!coordinates.ok() || !server.ok()) return;
  const auto slots = static_cast<Eigen::Index>(client.parameters().slot_labels.size());
  const Matrix aligned = outcome.result.alignment.Apply(*coordinates);
  report->slot = outcome.prepared.state.places.front().slot;
  report->client_slots = coordinates->topRows(slots);
  report->client_anchors = coordinates->bottomRows(coordinates->rows() - slots);
  report->aligned_slots = aligned.topRows(slots);
  report->aligned_anchors = aligned.bottomRows(aligned.rows() - slots);
  report->server_anchors = server->cast<double>();
}

// Whether an item's class is one of those whose matches are read.
bool IsInClasses(const SlotsOutcome& outcome, const PublicParameters& parameters, int32_t label) {
  const std::vector<ClassPlaces>& places = outcome.prepared.state.places;
  const int64_t slot = *parameters.SlotOf(label);  // checked by Finish
  return std::any_of(places.begin(), places.end(),
                     [&](const ClassPlaces& one) { return one.slot == slot; });
}

int64_t MatchesInClasses(const SlotsOutcome& outcome, const PublicParameters& parameters) {
  const std::vector<QueryMatch>& matches = outcome.result.matches;
  return std::count_if(matches.begin(), matches.end(), [&](const QueryMatch& match) {
    return IsInClasses(outcome, parameters, match.label);
  });
}

// The report's and the terminal's view of a query. Plots need the server's anchors in the answer.
ReportQuery ToReport(const SlotsOutcome& outcome, const SlotSchemeClient& client,
                     const std::optional<LocalGallery>& gallery) {
  ReportQuery report;
  report.query = {outcome.target.image, outcome.target.name, true};
  report.class_name = outcome.class_name;
  report.facts = Facts(outcome);
  if (gallery.has_value()) {
    report.non_private_matches = gallery->Nearest(
        outcome.target.target.features, outcome.prepared.state.expected.k, outcome.class_name);
  }
  for (const QueryMatch& match : outcome.result.matches) {
    ReportImage image = gallery.has_value() ? gallery->Picture(match.id, outcome.class_name)
                                            : ReportImage{"", match.id, false};
    image.same_class = IsInClasses(outcome, client.parameters(), match.label);
    report.private_matches.push_back(std::move(image));
  }
  if (outcome.prepared.state.expected.with_alignment) AddClouds(outcome, client, &report);
  return report;
}

nlohmann::json ClassesJson(const SlotsOutcome& outcome, const PublicParameters& parameters) {
  nlohmann::json classes = nlohmann::json::array();
  for (const ClassPlaces& one : outcome.prepared.state.places) {
    classes.push_back({{"label", parameters.slot_labels[static_cast<size_t>(one.slot)]},
                       {"class", parameters.ClassName(one.slot)},
                       {"places", one.places},
                       {"posterior", one.posterior}});
  }
  return classes;
}

nlohmann::json OutcomeJson(const SlotsOutcome& outcome, const PublicParameters& parameters,
                           Scheme scheme, const std::vector<std::string>& warnings,
                           const ReportQuery& report) {
  const QueryState& state = outcome.prepared.state;
  nlohmann::json compared = nlohmann::json::array();
  for (const ReportImage& image : report.non_private_matches) {
    compared.push_back({{"picture", image.caption}, {"same_class", image.same_class}});
  }
  nlohmann::json json = {{"query", outcome.target.name},
                         {"collection", outcome.prepared.request.collection()},
                         {"scheme", NameOf(scheme)},
                         {"label", outcome.target.target.label},
                         {"label_guessed", outcome.target.guessed},
                         {"class", outcome.class_name},
                         {"classes", ClassesJson(outcome, parameters)},
                         {"matches", ToJson(outcome.result.matches)},
                         {"matches_in_classes", MatchesInClasses(outcome, parameters)},
                         {"non_private_matches", compared},
                         {"truncated", outcome.result.truncated},
                         {"warnings", warnings},
                         {"guarantee", ToJson(state.guarantee)},
                         {"radius_meaning", ToJson(outcome.radius_meaning)},
                         {"sensitivity", state.sensitivity},
                         {"noise_stddev", state.noise_stddev},
                         {"ledger", LedgerJson(outcome.ledger)},
                         {"bytes",
                          {{"up", outcome.prepared.request.ByteSizeLong()},
                           {"down", outcome.response.ByteSizeLong()}}},
                         {"timings",
                          {{"features_ms", outcome.target.features_ms},
                           {"release_ms", outcome.release_ms},
                           {"network_ms", outcome.network_ms()},
                           {"server_ms", outcome.server_ms()}}},
                         {"alignment",
                          {{"relative_residual", outcome.result.relative_residual},
                           {"scale", outcome.result.alignment.scale}}},
                         {"embedding_version", outcome.result.embedding_version},
                         {"changes_since_embedding", outcome.result.changes_since_embedding}};
  if (outcome.target.row) json["row"] = *outcome.target.row;
  return json;
}

std::string Cell(const std::vector<ReportImage>& images, size_t i) {
  if (i >= images.size()) return "";
  return absl::StrCat(images[i].same_class ? "= " : "  ", Printable(images[i].caption));
}

// "heron .61 (5 of 8), gull .22 (3 of 8)"
std::string ClassesText(const SlotsOutcome& outcome, const PublicParameters& parameters) {
  std::vector<std::string> classes;
  for (const ClassPlaces& one : outcome.prepared.state.places) {
    classes.push_back(absl::StrFormat("%s %.2f (%d of %d)",
                                      Printable(parameters.ClassName(one.slot)), one.posterior,
                                      one.places, outcome.prepared.state.expected.k));
  }
  return absl::StrJoin(classes, ", ");
}

std::string ToText(const SlotsOutcome& outcome, const PublicParameters& parameters,
                   const ReportQuery& report) {
  std::ostringstream text;
  text << "\nquery " << Printable(outcome.target.name) << "   "
       << (outcome.target.guessed
               ? "classes that fit the anchors best: " + ClassesText(outcome, parameters)
               : absl::StrCat("class ", Printable(outcome.class_name)))
       << "\n";
  const std::vector<QueryMatch>& matches = outcome.result.matches;
  const size_t rows = std::max(report.non_private_matches.size(), matches.size());
  const bool compared = !report.non_private_matches.empty();
  text << (compared ? "      non-private                            private\n" : "      private\n");
  for (size_t i = 0; i < rows; ++i) {
    text << std::setw(4) << i + 1 << "  ";
    if (compared) {
      text << std::left << std::setw(39) << Cell(report.non_private_matches, i) << std::right;
    }
    text << Cell(report.private_matches, i);
    if (i < matches.size()) {
      text << "  class " << Printable(parameters.ClassName(*parameters.SlotOf(matches[i].label)));
    }
    text << "\n";
    if (i < matches.size() && !matches[i].payload.empty()) {
      text << std::string(compared ? 47 : 8, ' ')
           << Printable(Line(nlohmann::json::parse(matches[i].payload))) << "\n";
    }
  }
  text << "      " << MatchesInClasses(outcome, parameters) << " of " << matches.size()
       << (outcome.target.guessed ? " have one of these classes (=)\n" : " have the class (=)\n");
  for (const std::string& fact : report.facts) text << "  " << fact << "\n";
  if (outcome.result.truncated) {
    text << (outcome.prepared.request.has_filter()
                 ? "  fewer items than -k match the filter: all are shown\n"
                 : "  the gallery has fewer items than -k: all are shown\n");
  }
  return text.str();
}

absl::Status PrintOutcomes(const Context& context, const SlotSchemeClient& client, Scheme scheme,
                           const std::optional<LocalGallery>& gallery,
                           const std::vector<std::string>& warnings,
                           const std::vector<SlotsOutcome>& outcomes,
                           std::optional<PrivateFile>& report_file) {
  std::vector<ReportQuery> reports;
  for (const SlotsOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    const ReportQuery& report = reports.emplace_back(ToReport(outcome, client, gallery));
    const PublicParameters& parameters = client.parameters();
    Print({.json = OutcomeJson(outcome, parameters, scheme, warnings, report),
           .text = ToText(outcome, parameters, report)},
          context.json);
  }
  if (!report_file.has_value() || reports.empty()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(WriteReport(reports, &*report_file));
  if (!context.json) {
    std::cout << "\nreport: " << std::filesystem::absolute(report_file->path()).string() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status QuerySlots(const Context& context, SlotsQuery options) {
  PM_RETURN_IF_ERROR(ParseTexts(&options));
  const PrivacyCost& cost = options.query.cost;
  PM_ASSIGN_OR_RETURN(const int64_t classes, ClassesFrom(options.classes));
  // Everything that can fail on this machine precedes the first charge.
  PM_ASSIGN_OR_RETURN(std::optional<PrivateFile> report_file, OpenReport(options));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  v1::GetCollectionResponse collection;
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const SlotSchemeClient> client,
                      CreateClient(transport, options, &collection));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadTargets(options.targets, *client, options.query.k, classes));
  PM_RETURN_IF_ERROR(CheckLabelsAreGiven(options, targets));
  PM_ASSIGN_OR_RETURN(const std::optional<LocalGallery> gallery,
                      OpenGallery(options, client->parameters()));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(context.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(client->parameters().collection_uuid));
  PM_ASSIGN_OR_RETURN(const double delta, DeltaOf(cost));
  PM_RETURN_IF_ERROR(
      CheckAffordable(options.collection, entry, targets.size(), {cost.epsilon, delta}));
  const std::vector<std::string> warnings = WarningsAbout(options, collection);
  for (const std::string& warning : warnings) Warn(warning);

  std::vector<SlotsOutcome> outcomes = SendAll<SlotsOutcome>(
      targets,
      [&](SlotsOutcome* outcome) { return Release(*client, *ledger, options.query, outcome); },
      [&](SlotsOutcome* outcome) {
        return Send(context, transport, options.scheme, collection, outcome);
      });
  std::optional<RadiusStats> meaning;
  if (!std::isnan(cost.radius)) meaning = client->DescribeRadius(cost.radius);
  for (SlotsOutcome& outcome : outcomes) {
    ReadResult(&outcome, [&] { return client->Finish(outcome.prepared.state, outcome.response); });
    outcome.radius_meaning = meaning;
  }
  PM_RETURN_IF_ERROR(
      PrintOutcomes(context, *client, options.scheme, gallery, warnings, outcomes, report_file));
  return FailureOf(AttemptsOf(outcomes), targets.size(), "privatemail resend --label CLASS");
}

}  // namespace privatemail::client::cli

#include "client/cli/query_slots.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/collection.h"
#include "client/cli/filter_json.h"
#include "client/cli/images.h"
#include "client/cli/last_release.h"
#include "client/cli/private_file.h"
#include "client/cli/query_batch.h"
#include "client/cli/report.h"
#include "client/cli/slots_outcome.h"
#include "client/privacy/accounting/composition.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"
#include "privatemail/anchored_client.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::cli {
namespace {

template <typename Client>
absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> CreateSlotClient(
    const v1::GetCollectionResponse& collection, const std::vector<v1::GetAnchorsResponse>& anchors,
    const std::optional<Anchors>& dummies, const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(Client client, Client::Create(collection, anchors, dummies, limits));
  return std::make_unique<const Client>(std::move(client));
}

absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> CreateClient(
    const Context& context, const Transport& transport, const SlotsQuery& options,
    v1::GetCollectionResponse* collection) {
  PM_ASSIGN_OR_RETURN(*collection, transport.GetCollection(options.collection));
  PM_ASSIGN_OR_RETURN(const std::vector<v1::GetAnchorsResponse> anchors,
                      FetchAnchors(context, transport, *collection, options.scheme));
  std::optional<Anchors> dummies;
  if (!options.dummies_file.empty()) {
    dummies.emplace();
    PM_ASSIGN_OR_RETURN(dummies->features, ReadVectors(options.dummies_file));
    PM_ASSIGN_OR_RETURN(dummies->labels, ReadLabels(options.dummy_labels_file));
  }
  return options.scheme == Scheme::kAnchored
             ? CreateSlotClient<AnchoredClient>(*collection, anchors, dummies, LimitsOf(context))
             : CreateSlotClient<JointClient>(*collection, anchors, dummies, LimitsOf(context));
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

// OK unless public data shows that queries find little; the same for every target.
absl::Status CheckAligned(const absl::StatusOr<std::optional<ExpectedAlignment>>& alignment) {
  if (!alignment.ok()) return alignment.status();
  return alignment->has_value() ? CheckAlignment(**alignment) : absl::OkStatus();
}

std::vector<std::string> WarningsAbout(const SlotsQuery& options,
                                       const v1::GetCollectionResponse& collection,
                                       const absl::Status& aligned, bool checked) {
  std::vector<std::string> warnings;
  if (!aligned.ok()) warnings.emplace_back(aligned.message());
  if (!checked) warnings.push_back(absl::StrCat("alignment was not checked: ", kNoCoordinates));
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
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(options.targets));
  // Everything that can fail on this machine precedes the first charge.
  PM_ASSIGN_OR_RETURN(std::optional<PrivateFile> report_file, OpenReport(options));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  v1::GetCollectionResponse collection;
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const SlotSchemeClient> client,
                      CreateClient(context, transport, options, &collection));
  PM_ASSIGN_OR_RETURN(
      const std::vector<NamedTarget> targets,
      ReadTargets(options.targets, *client, std::move(rows), options.query.k, classes));
  PM_RETURN_IF_ERROR(CheckLabelsAreGiven(options, targets));
  const auto alignment = client->ExpectAlignment();
  const absl::Status aligned = CheckAligned(alignment);
  if (!options.accept_misalignment) PM_RETURN_IF_ERROR(OrAccept(aligned));
  PM_ASSIGN_OR_RETURN(const std::optional<LocalGallery> gallery,
                      OpenGallery(options, client->parameters()));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(context.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(client->parameters().collection_uuid));
  PM_ASSIGN_OR_RETURN(const double delta, DeltaOf(cost));
  PM_RETURN_IF_ERROR(
      CheckAffordable(options.collection, entry, targets.size(), {cost.epsilon, delta}));
  const std::vector<std::string> warnings =
      WarningsAbout(options, collection, aligned, !alignment.ok() || alignment->has_value());
  for (const std::string& warning : warnings) Warn(warning);

  MemoryLimit answers(kBatchMemory, context.connection.max_memory);
  std::vector<SlotsOutcome> outcomes = SendAll<SlotsOutcome>(
      targets,
      [&](SlotsOutcome* outcome) { return Release(*client, *ledger, options.query, outcome); },
      [&](SlotsOutcome* outcome) {
        PM_RETURN_IF_ERROR(Send(context, transport, options.scheme, collection, outcome));
        return answers.Reserve(static_cast<int64_t>(outcome->response.SpaceUsedLong()));
      });
  double class_recall = std::nan("");
  if (targets.front().guessed) {
    class_recall = client->class_ranker().ExpectedRecall(options.query.k, classes);
  }
  std::optional<RadiusStats> meaning;
  if (!std::isnan(cost.radius)) meaning = client->DescribeRadius(cost.radius);
  for (SlotsOutcome& outcome : outcomes) {
    ReadResult(&outcome, [&] { return client->Finish(outcome.prepared.state, outcome.response); });
    outcome.radius_meaning = meaning;
    if (alignment.ok()) outcome.alignment = *alignment;
    if (outcome.target.guessed) outcome.class_recall = class_recall;
  }
  PM_RETURN_IF_ERROR(
      PrintOutcomes(context, *client, options.scheme, gallery, warnings, outcomes, report_file));
  return FailureOf(AttemptsOf(outcomes), targets.size(), "privatemail resend --label CLASS");
}

}  // namespace privatemail::client::cli

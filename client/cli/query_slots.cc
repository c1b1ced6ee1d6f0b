#include "client/cli/query_slots.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "privatemail/anchored_client.h"
#include "client/cli/attempt.h"
#include "client/cli/filter_json.h"
#include "client/cli/last_release.h"
#include "client/cli/local_gallery.h"
#include "client/cli/private_file.h"
#include "client/cli/query_outcome.h"
#include "client/cli/report.h"
#include "client/privacy/accounting/composition.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

template <typename Client>
absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> Make(
    const v1::GetCollectionResponse& collection, const std::vector<v1::GetAnchorsResponse>& anchors,
    const std::optional<Anchors>& dummies) {
  PM_ASSIGN_OR_RETURN(Client client, Client::Create(collection, anchors, dummies));
  return std::make_unique<const Client>(std::move(client));
}

absl::StatusOr<std::unique_ptr<const SlotSchemeClient>> MakeClient(
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
  return options.scheme == Scheme::kAnchored ? Make<AnchoredClient>(*collection, anchors, dummies)
                                             : Make<JointClient>(*collection, anchors, dummies);
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

absl::StatusOr<std::optional<LocalGallery>> DescribeGallery(const SlotsQuery& options) {
  if (options.compare_images.empty()) return std::nullopt;
  return LocalGallery::Describe(options.compare_images, options.targets.extractor);
}

absl::StatusOr<std::optional<PrivateFile>> OpenReport(const SlotsQuery& options) {
  if (options.report_file.empty()) return std::nullopt;
  return PrivateFile::Create("--report", options.report_file);
}

// Where the class is not hidden, nothing may depend on the features but what carries the noise: a
// label that was guessed from them would tell how they lie.
absl::Status CheckLabelsAreGiven(const SlotsQuery& options,
                                 const std::vector<NamedTarget>& targets) {
  const MechanismTraits& traits = TraitsOf(options.query.cost.mechanism);
  const bool guessed = std::any_of(targets.begin(), targets.end(),
                                   [](const NamedTarget& target) { return target.guessed; });
  if (traits.protects == MechanismTraits::Protects::kValue || !guessed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--label must be given with ", traits.name,
                   ", which does not hide the class: a class guessed from the features would tell "
                   "what it is to hide"));
}

// What one query spends of delta: a pure law does only over several iterations, and not always.
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
  // The searchable part of a gallery is what was embedded last.
  if (collection.changes_since_embedding() > 0) {
    warnings.push_back(
        absl::StrCat(collection.embedded_items(), " items are searchable, ", collection.items(),
                     " are stored, and ", Counted(collection.changes_since_embedding(), "change"),
                     " since the last build may not be shown, deletions apart, which always are: "
                     "`privatemail build ",
                     collection.name(), "`, by who may write, shows them all"));
  }
  if (options.query.filter) {
    warnings.emplace_back(
        "the server reads --filter in clear, and the guarantee does not cover it: what it tells "
        "about your query is told");
  }
  return warnings;
}

absl::Status Tell(const Context& context, const SlotSchemeClient& client,
                  const std::optional<LocalGallery>& gallery,
                  const std::vector<std::string>& warnings,
                  const std::vector<QueryOutcome>& outcomes,
                  std::optional<PrivateFile>& report_file) {
  std::vector<ReportQuery> reports;
  for (const QueryOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    reports.push_back(Describe(outcome, client, gallery));
    Answer(context, ToJson(outcome, warnings, reports.back()),
           [&] { Print(outcome, reports.back()); });
  }
  if (!report_file.has_value() || reports.empty()) return absl::OkStatus();
  PM_RETURN_IF_ERROR(WriteReport(reports, &*report_file));
  if (!context.json) {
    std::cout << "\nreport: " << std::filesystem::absolute(report_file->path()).string() << "\n";
  }
  return absl::OkStatus();
}

// What the command line says in words, in numbers that it may leave out, and by files.
absl::Status TakeTexts(SlotsQuery* options) {
  PM_RETURN_IF_ERROR(CheckOptions(*options));
  PrivacyCost& cost = options->query.cost;
  PM_ASSIGN_OR_RETURN(cost.mechanism, MechanismFromName(options->mechanism));
  PM_RETURN_IF_ERROR(TakeNumber("delta", options->delta, &cost.delta));
  PM_RETURN_IF_ERROR(TakeNumber("radius", options->radius, &cost.radius));
  if (options->post_process == "server") options->query.post_processing = PostProcessing::kServer;
  options->query.with_alignment = !options->report_file.empty();
  PM_ASSIGN_OR_RETURN(options->query.filter, FilterFromJson(options->filter));
  return absl::OkStatus();
}

}  // namespace

absl::Status QuerySlots(const Context& context, SlotsQuery options) {
  PM_RETURN_IF_ERROR(TakeTexts(&options));
  const PrivacyCost& cost = options.query.cost;
  // Everything that can fail on this machine comes before the first charge.
  PM_ASSIGN_OR_RETURN(std::optional<PrivateFile> report_file, OpenReport(options));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  v1::GetCollectionResponse collection;
  PM_ASSIGN_OR_RETURN(const std::unique_ptr<const SlotSchemeClient> client,
                      MakeClient(transport, options, &collection));
  PM_ASSIGN_OR_RETURN(const std::vector<NamedTarget> targets,
                      ReadTargets(options.targets, *client));
  PM_RETURN_IF_ERROR(CheckLabelsAreGiven(options, targets));
  PM_ASSIGN_OR_RETURN(const std::optional<LocalGallery> gallery, DescribeGallery(options));
  PM_ASSIGN_OR_RETURN(const auto ledger, OpenLedger(context));
  PM_RETURN_IF_ERROR(CheckLastReleaseCanBeSaved(context.state_folder));
  PM_ASSIGN_OR_RETURN(const LedgerEntry entry, ledger->Show(client->parameters().collection_uuid));
  PM_ASSIGN_OR_RETURN(const double delta, DeltaOf(cost));
  PM_RETURN_IF_ERROR(
      CheckAffordable(options.collection, entry, targets.size(), {cost.epsilon, delta}));
  const std::vector<std::string> warnings = WarningsAbout(options, collection);
  for (const std::string& warning : warnings) Warn(warning);

  // What is about to leave is kept first, so that `explain` shows it even when the answer never
  // comes.
  const KeepFn keep = [&](const v1::RetrieveRequest& request) {
    return SaveLastRelease(
        context.state_folder,
        {.scheme = options.scheme, .collection = collection, .request = request, .cells = {}});
  };
  const SendFn send = [&](const v1::RetrieveRequest& request) {
    return transport.Retrieve(request);
  };
  std::vector<QueryOutcome> outcomes =
      SendAll(*client, keep, send, *ledger, targets, options.query);
  std::optional<RadiusStats> meaning;
  if (!std::isnan(cost.radius)) meaning = client->DescribeRadius(cost.radius);
  for (QueryOutcome& outcome : outcomes) {
    Finish(*client, &outcome);
    outcome.radius_meaning = meaning;
  }
  PM_RETURN_IF_ERROR(Tell(context, *client, gallery, warnings, outcomes, report_file));
  return FailureOf(AttemptsOf(outcomes), targets.size(), "privatemail resend --label CLASS");
}

}  // namespace privatemail::client::cli

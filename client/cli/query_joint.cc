#include "client/cli/query_joint.h"

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
#include "client/cli/images.h"
#include "client/cli/joint_outcome.h"
#include "client/cli/report.h"
#include "client/queries/filter_json.h"
#include "client/queries/private_file.h"
#include "common/base/status_macros.h"
#include "common/features/vector_file.h"

namespace privatemail::client::cli {
namespace {

absl::StatusOr<std::optional<Anchors>> ReadDummies(const JointQuery& options) {
  if (options.dummies_file.empty()) return std::nullopt;
  Anchors dummies;
  PM_ASSIGN_OR_RETURN(dummies.features, ReadVectors(options.dummies_file));
  PM_ASSIGN_OR_RETURN(dummies.labels, ReadLabels(options.dummy_labels_file));
  return dummies;
}

absl::Status CheckOptions(const JointQuery& options) {
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

absl::StatusOr<std::optional<LocalGallery>> OpenGallery(const JointQuery& options,
                                                        const PublicParameters& parameters) {
  if (options.compare_images.empty()) return std::nullopt;
  ExtractorOptions extractor = options.targets.extractor;
  extractor.collection = parameters.extractor;
  return LocalGallery::Create(options.compare_images, extractor);
}

absl::StatusOr<std::optional<PrivateFile>> OpenReport(const JointQuery& options) {
  if (options.report_file.empty()) return std::nullopt;
  return PrivateFile::Create("--report", options.report_file);
}

// Fills options->query from the options that are texts, optional numbers and files.
absl::Status ParseTexts(JointQuery* options) {
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

absl::Status PrintOutcomes(const Context& context, const JointClient& client,
                           const std::optional<LocalGallery>& gallery,
                           const std::vector<std::string>& warnings,
                           const std::vector<JointOutcome>& outcomes,
                           std::optional<PrivateFile>& report_file) {
  std::vector<ReportQuery> reports;
  for (const JointOutcome& outcome : outcomes) {
    if (!outcome.status.ok()) continue;
    const ReportQuery& report = reports.emplace_back(ToReport(outcome, client, gallery));
    const PublicParameters& parameters = client.parameters();
    Print({.json = OutcomeJson(outcome, parameters, warnings, report),
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

absl::Status QueryJoint(const Context& context, JointQuery options) {
  PM_RETURN_IF_ERROR(ParseTexts(&options));
  PM_ASSIGN_OR_RETURN(const int64_t classes, ClassesFrom(options.classes));
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> rows, ReadRows(options.targets, Metric::kCosine));
  // Everything that can fail on this machine precedes the first charge.
  PM_ASSIGN_OR_RETURN(std::optional<PrivateFile> report_file, OpenReport(options));
  PM_ASSIGN_OR_RETURN(const Transport transport, Transport::Create(context.connection));
  PM_ASSIGN_OR_RETURN(const std::optional<Anchors> dummies, ReadDummies(options));
  PM_ASSIGN_OR_RETURN(
      const JointQueries queries,
      JointQueries::Create(transport, SettingsOf(context), options.collection, dummies));
  const auto arrived = std::chrono::steady_clock::now();
  const JointClient& client = queries.client();
  PM_ASSIGN_OR_RETURN(std::vector<NamedTarget> targets,
                      ReadLabelled(options.targets, client.parameters(), std::move(rows)));
  WaitForDeparture(options.targets, arrived);
  PM_RETURN_IF_ERROR(queries.AllotClasses(options.query.k, classes, &targets));
  if (!options.accept_misalignment) PM_RETURN_IF_ERROR(OrAccept(queries.CheckAlignment()));
  PM_ASSIGN_OR_RETURN(const std::optional<LocalGallery> gallery,
                      OpenGallery(options, client.parameters()));
  std::vector<std::string> warnings;
  PM_ASSIGN_OR_RETURN(const std::vector<JointOutcome> outcomes,
                      queries.Run(targets, options.query, classes, RecordAndWarn(&warnings)));
  PM_RETURN_IF_ERROR(PrintOutcomes(context, client, gallery, warnings, outcomes, report_file));
  return FailureOf(AttemptsOf(outcomes), targets.size(), "privatemail resend --label CLASS");
}

}  // namespace privatemail::client::cli

#include "client/audit/audit.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/audit/subjects.h"
#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {
namespace {

struct AuditOptions {
  std::string mechanism;
  bool all = false;
  double epsilon = 2;
  std::optional<double> delta;
  audit::Options run;
};

nlohmann::json AuditToJson(const audit::Result& result) {
  return {{"mechanism", result.mechanism},       {"claimed_epsilon", result.claim.epsilon},
          {"claimed_delta", result.claim.delta}, {"epsilon_lower", result.epsilon_lower},
          {"confidence", result.confidence},     {"exceeded", result.Exceeded()},
          {"releases", result.releases},         {"attacked", result.best_attack},
          {"proven", result.claim.proven}};
}

constexpr int64_t kProbeReleases = 64;  // of each attack, to estimate the time of all

// Seconds for `options.releases` of one subject, from a few of its releases.
absl::StatusOr<double> EstimateSeconds(const audit::Subject& subject,
                                       const audit::Options& options) {
  double seconds = 0;
  for (const audit::Attack& attack : subject.attacks) {
    const auto releases = static_cast<double>(std::min(options.releases, attack.max_releases));
    const auto start = std::chrono::steady_clock::now();
    PM_RETURN_IF_ERROR(audit::RunAudit({subject.mechanism, subject.claim, {attack}},
                                       {kProbeReleases, options.confidence})
                           .status());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds += taken.count() * releases / static_cast<double>(kProbeReleases);
  }
  return seconds;
}

// On standard error; silent for a short run.
absl::Status PrintEstimate(const std::vector<audit::CreateSubject>& subjects,
                           const audit::Options& options) {
  if (options.releases < 100 * kProbeReleases) return absl::OkStatus();  // it ends soon
  double seconds = 0;
  for (const audit::CreateSubject& create : subjects) {
    const auto start = std::chrono::steady_clock::now();
    PM_ASSIGN_OR_RETURN(const audit::Subject subject, create());
    const std::chrono::duration<double> creation = std::chrono::steady_clock::now() - start;
    PM_ASSIGN_OR_RETURN(const double attacks, EstimateSeconds(subject, options));
    seconds += creation.count() + attacks;
  }
  std::cerr << "auditing " << subjects.size() << " mechanisms with " << options.releases
            << " releases each takes about " << absl::Ceil(absl::Seconds(seconds), absl::Seconds(1))
            << "\n";
  return absl::OkStatus();
}

absl::Status Audit(const Context& context, const AuditOptions& options) {
  PM_ASSIGN_OR_RETURN(
      const std::vector<audit::CreateSubject> subjects,
      audit::Subjects(options.all ? "" : options.mechanism, options.epsilon, options.delta));
  if (options.all) PM_RETURN_IF_ERROR(PrintEstimate(subjects, options.run));
  std::vector<audit::Result> results;
  nlohmann::json rows = nlohmann::json::array();
  ProgressBar bar("audit");
  for (const audit::CreateSubject& create : subjects) {
    PM_ASSIGN_OR_RETURN(const audit::Subject subject, create());
    PM_ASSIGN_OR_RETURN(results.emplace_back(), audit::RunAudit(subject, options.run));
    rows.push_back(AuditToJson(results.back()));
    bar.Show(std::ssize(results), std::ssize(subjects));
  }
  Print({.json = options.all ? rows : rows.front(),
         .columns = {{"",
                      {"mechanism", "claimed_epsilon", "claimed_delta", "epsilon_lower", "exceeded",
                       "proven", "releases", "attacked"}}}},
        context.json, context.verbose);
  if (audit::ExitCode(results) == 0) return absl::OkStatus();
  return absl::InternalError("an attack exceeded its claim");
}

}  // namespace

void AddAuditCommand(CLI::App& app, Context& context) {
  const auto [command, options] =
      AddCommand(app, context, "audit",
                 "Attack releases and print a lower bound on their epsilon beside the "
                 "claim; exit code 1 if a bound exceeds its claim",
                 &Audit);
  CLI::App* what = command->add_option_group("what", "Exactly one of these");
  what->add_option(
      "--mechanism", options->mechanism,
      absl::StrCat(MechanismNames(), "; cells: the choice of cells; encrypted: queries"));
  what->add_flag(
      "--all", options->all,
      "Every mechanism alone and in the joint release; the choice of cells alone and in a request; "
      "requests by joint and encrypted queries as a daemon receives them, with sizes and times");
  what->require_option(1);
  command->add_option("--epsilon", options->epsilon, "Claimed epsilon to attack; spends no budget")
      ->capture_default_str();
  command->add_option("--delta", options->delta,
                      absl::StrFormat("Claimed delta, for the Gaussian mechanisms and for several "
                                      "iterations (default %g)",
                                      audit::kDefaultDelta));
  command->add_option("--releases", options->run.releases, "Releases of each neighbour, per attack")
      ->capture_default_str();
}

}  // namespace privatemail::client::cli

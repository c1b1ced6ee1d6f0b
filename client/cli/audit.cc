#include "client/audit/audit.h"

#include <iostream>

#include "absl/strings/str_format.h"
#include "client/audit/joint_attack.h"
#include "client/audit/mechanism_attacks.h"
#include "client/cli/command.h"
#include "common/base/status_macros.h"

namespace privatemail::cli {
namespace {

struct AuditOptions {
  std::string mechanism;
  bool all = false;
  double epsilon = 2;
  double delta = 1e-5;
  audit::Options run;
};

absl::StatusOr<std::vector<audit::Subject>> Subjects(const AuditOptions& options) {
  std::vector<audit::Subject> subjects;
  if (!options.all) {
    PM_ASSIGN_OR_RETURN(const MechanismKind kind, MechanismFromName(options.mechanism));
    PM_ASSIGN_OR_RETURN(subjects.emplace_back(),
                        audit::AttackProductionMechanism(kind, options.epsilon, options.delta));
    return subjects;
  }
  for (const MechanismTraits& traits : AllMechanisms()) {
    PM_ASSIGN_OR_RETURN(subjects.emplace_back(), audit::AttackProductionMechanism(
                                                     traits.kind, options.epsilon, options.delta));
  }
  PM_ASSIGN_OR_RETURN(subjects.emplace_back(),
                      audit::AttackJointRelease(options.epsilon, options.delta));
  return subjects;
}

nlohmann::json ToJson(const audit::Result& result) {
  return {{"mechanism", result.mechanism},       {"claimed_epsilon", result.claim.epsilon},
          {"claimed_delta", result.claim.delta}, {"epsilon_lower", result.epsilon_lower},
          {"confidence", result.confidence},     {"exceeded", result.Exceeded()},
          {"releases", result.releases},         {"attacked", result.attacked},
          {"proven", result.claim.proven}};
}

void PrintHead() {
  std::cout << absl::StreamFormat("%-28s %-9s %-9s %-11s %-10s %-9s %s\n", "mechanism", "epsilon",
                                  "delta", "at least", "", "releases", "attacked by")
            << std::flush;
}

void Print(const audit::Result& r) {
  std::cout << absl::StreamFormat(
                   "%-28s %-9.4g %-9.4g %-11.4f %-10s %-9d %s\n", r.mechanism, r.claim.epsilon,
                   r.claim.delta, r.epsilon_lower,
                   r.Exceeded() ? "EXCEEDED" : (r.claim.proven ? "proven" : "published"),
                   r.releases, r.attacked)
            << std::flush;
}

absl::Status Audit(const Context& context, const AuditOptions& options) {
  PM_ASSIGN_OR_RETURN(const std::vector<audit::Subject> subjects, Subjects(options));
  std::vector<audit::Result> results;
  nlohmann::json rows = nlohmann::json::array();
  if (!context.json) PrintHead();
  for (const audit::Subject& subject : subjects) {
    PM_ASSIGN_OR_RETURN(results.emplace_back(), audit::RunAudit(subject, options.run));
    rows.push_back(ToJson(results.back()));
    if (!context.json) Print(results.back());  // at once: each takes its time
  }
  Answer(context, options.all ? rows : rows.front(), [&] {
    std::cout << "each with confidence " << absl::StrFormat("%.7g", results.front().confidence)
              << "\n";
  });
  if (audit::ExitCode(results) == 0) return absl::OkStatus();
  return absl::InternalError("an attack got further than the claim allows");
}

}  // namespace

void AddAuditCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App* command = AddCommand(app, "audit",
                                 "Attack our own releases: what they certainly cost, beside the "
                                 "claim; exit 1 when it is more");
  CLI::App* what = command->add_option_group("what", "One of the two");
  what->add_option("--mechanism", options->mechanism, MechanismNames());
  what->add_flag("--all", options->all, "Every mechanism, and the joint release");
  what->require_option(1);
  command->add_option("--epsilon", options->epsilon, "Claimed")->capture_default_str();
  command->add_option("--delta", options->delta, "Claimed, by the Gaussian mechanisms")
      ->capture_default_str();
  command->add_option("--releases", options->run.releases, "Of either neighbour, for each attack")
      ->capture_default_str();
  command
      ->add_option("--confidence", options->run.confidence,
                   "That a reported figure is no larger than the truth")
      ->capture_default_str();
  command->callback([&context, options] {
    context.run = [&context, options] { return Audit(context, *options); };
  });
}

}  // namespace privatemail::cli

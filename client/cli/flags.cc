#include "client/cli/flags.h"

#include <optional>

#include "absl/strings/str_replace.h"
#include "common/base/field_error.h"

namespace privatemail::client::cli {
namespace {

// The flag of a parameter: its name, except for those with shorter flags.
std::string FlagOf(absl::string_view parameter) {
  static const std::map<std::string, std::string, std::less<>> kShorter = {
      {"kernel_bandwidth", "--bandwidth"},
      {"embedding_dim", "--dim"},
      {"targets", "--vectors"},
      {"ca_file", "--ca"},
      {"trust_fingerprint", "--trust"},
      {"certificate_file", "--cert"},
      {"certificate_key_file", "--cert-key"},
      {"target", "--vectors"},
      {"max_computing", "--deadline"},
      {"with_alignment", "--report"}};
  const auto shorter = kShorter.find(parameter);
  if (shorter != kShorter.end()) return shorter->second;
  return absl::StrCat(parameter.size() == 1 ? "-" : "--",
                      absl::StrReplaceAll(parameter, {{"_", "-"}}));
}

// The user's remedy for a field that is no flag of the command.
std::string RemedyOf(const absl::Status& status, absl::string_view field) {
  if (field == "budget") return "; see `privatemail budget set`";
  if (field == "fingerprint") return ": plan again with `privatemail plan`";
  if (absl::IsFailedPrecondition(status) &&
      (field == "expected_recall" || field == "own_anchors")) {
    return "; nothing was charged; to query all the same: --accept-misalignment";
  }
  return "";
}

}  // namespace

std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags) {
  for (const char* flag : flags) {
    if (command.get_option(flag)->count() > 0) return flag;
  }
  return "";
}

absl::Status WithFlagName(const absl::Status& status, const CLI::App& command) {
  const std::optional<FieldProblem> problem = FieldProblemOf(status);
  if (!problem.has_value()) return status;
  // "filter.and[1]" is a part of --filter.
  const std::string head = problem->field.substr(0, problem->field.find_first_of(".["));
  const std::string flag = FlagOf(head);
  bool is_flag = false;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    is_flag = is_flag || app->get_option_no_throw(flag) != nullptr;
  }
  const std::string name =
      is_flag ? absl::StrCat(flag, problem->field.substr(head.size())) : problem->field;
  return WithFieldName(WithNote(status, RemedyOf(status, problem->field)), name);
}

void AddEmbeddingOptions(CLI::App* command, EmbeddingSettings* settings) {
  command
      ->add_option("--bandwidth", settings->kernel_bandwidth, "Kernel bandwidth over unit vectors")
      ->capture_default_str();
  command->add_option("--dim", settings->embedding_dim, "Dimensions of the embedding")
      ->capture_default_str();
  AddChoice(command, "--label-graph", &settings->label_graph, kLabelGraphNames,
            "Graph over the labels");
  AddChoice(command, "--kernel", &settings->kernel, kKernelNames,
            "Denominator of the feature kernel");
  AddChoice(command, "--start", &settings->start, kStartNames,
            "What the embedding starts from: normal draws, or a public point for each class");
  command->add_option("--start-stddev", settings->start_stddev, "Standard deviation of the start")
      ->capture_default_str();
}

}  // namespace privatemail::client::cli

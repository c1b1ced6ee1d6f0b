#include "client/flags/names.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace privatemail::client::cli {
namespace {

// The flag of a parameter: its name, except for two with shorter flags.
std::string FlagOf(absl::string_view parameter) {
  if (parameter == "kernel_bandwidth") return "--bandwidth";
  if (parameter == "embedding_dim") return "--dim";
  return absl::StrCat(parameter.size() == 1 ? "-" : "--",
                      absl::StrReplaceAll(parameter, {{"_", "-"}}));
}

}  // namespace

std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags) {
  for (const char* flag : flags) {
    if (command.get_option(flag)->count() > 0) return flag;
  }
  return "";
}

absl::Status WithFlagName(const absl::Status& status, const CLI::App& command) {
  const absl::string_view message = status.message();
  const absl::string_view parameter = message.substr(0, message.find(' '));
  const absl::string_view rest = message.substr(parameter.size());
  const bool says = absl::StartsWith(rest, " must ") || absl::StartsWith(rest, " is of no use ");
  if (!absl::IsInvalidArgument(status) || parameter.empty() || parameter[0] == '-' || !says) {
    return status;
  }
  const std::string flag = FlagOf(parameter);
  if (command.get_option_no_throw(flag) == nullptr) return status;
  return absl::InvalidArgumentError(absl::StrCat(flag, rest));
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

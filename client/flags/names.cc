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

}  // namespace privatemail::client::cli

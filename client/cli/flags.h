// Flags of commands: choices among names, and the flag of a parameter.
#ifndef PRIVATEMAIL_CLIENT_CLI_FLAGS_H_
#define PRIVATEMAIL_CLIENT_CLI_FLAGS_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/setting_names.h"

namespace privatemail::client::cli {

// An option whose value is one of the names. CLI11's own help would show the numbers as well.
template <typename Value, typename Named>
CLI::Option* AddChoice(CLI::App* command, const std::string& flag, Value* value,
                       const std::map<std::string, Named>& names, const std::string& description) {
  const auto choose = [flag, value, names](const std::string& text) {
    const auto chosen = names.find(text);
    if (chosen == names.end()) {
      throw CLI::ValidationError(
          absl::StrCat(flag, " must be ", JoinNames(names), ", but is \"", text, "\""));
    }
    *value = chosen->second;
  };
  CLI::Option* option = command->add_option_function<std::string>(
      flag, choose, absl::StrCat(description, ": ", JoinNames(names)));
  for (const auto& [name, known] : names) {
    if (*value == known) option->default_str(name);
  }
  return option;
}

// The first of the command's flags that is given; empty: none.
std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags);

// An error about a field (FieldProblemOf) with the flag that the command has for it, and what the
// user can do: "--delta must be given". Others as they are.
absl::Status WithFlagName(const absl::Status& status, const CLI::App& command);

void AddEmbeddingOptions(CLI::App* command, EmbeddingSettings* settings);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_FLAGS_H_

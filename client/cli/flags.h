// Flags of commands: choices among names, lists of numbers, the flag of a parameter, and the check
// of every word of a command line.
#ifndef PRIVATEMAIL_CLIENT_CLI_FLAGS_H_
#define PRIVATEMAIL_CLIENT_CLI_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/setting_names.h"

namespace privatemail::client::cli {

// An option whose value is one of the names. CLI11's own help would show the numbers as well.
template <typename Value, typename Named>
void AddChoice(CLI::App* command, const std::string& flag, Value* value,
               const std::map<std::string, Named>& names, const std::string& description) {
  const auto choose = [flag, value, names](const std::string& text) {
    const auto chosen = names.find(text);
    if (chosen == names.end()) {
      throw CLI::ValidationError(std::string(UnknownName(flag, names, text).message()));
    }
    *value = chosen->second;
  };
  CLI::Option* option = command->add_option_function<std::string>(
      flag, choose, absl::StrCat(description, ": ", JoinNames(names)));
  for (const auto& [name, known] : names) {
    if (*value == known) option->default_str(name);
  }
}

// An option of one or more words, which `read` parses: it throws CLI::ConversionError.
void AddWords(CLI::App* command, const std::string& flags, const char* type,
              const std::string& description,
              std::function<void(const std::vector<std::string>& words)> read);

// An option of one or more numbers, double or int64_t, separated by commas or spaces.
template <typename Number>
void AddNumbers(CLI::App* command, const std::string& flags, std::vector<Number>* numbers,
                const std::string& description);

// An option of a number of bytes, with decimal suffixes K, M and G: "2500", "1.5M".
void AddBytes(CLI::App* command, const std::string& flags, int64_t* bytes,
              const std::string& description);

void AddEmbeddingOptions(CLI::App* command, EmbeddingSettings* settings);

// Makes every option of the command and its subcommands refuse an empty word (an unset shell
// variable), every numeric one other text, and every one whose text is sent (positional ones,
// --collection, --cursor) what is not UTF-8, with a message that says what it takes. CLI11 would
// read an empty word as 0 or as no option. Call it after all options are added; lists of AddNumbers
// check themselves.
void RequireValidWords(CLI::App& app);

// The first of the command's flags that is given; empty: none.
std::string FirstGiven(const CLI::App& command, absl::Span<const char* const> flags);

// An error about a field (FieldProblemOf) with the flag that the command has for it, and what the
// user can do: "--delta must be given". Others as they are.
absl::Status WithFlagName(const absl::Status& status, const CLI::App& command);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_FLAGS_H_

// Parsing of the command line, suggestions for mistakes in it, and shell completion.
#ifndef PRIVATEMAIL_CLIENT_CLI_PARSE_H_
#define PRIVATEMAIL_CLIENT_CLI_PARSE_H_

#include <CLI/CLI.hpp>
#include <optional>

#include "client/cli/command.h"

namespace privatemail::client::cli {

// Nothing if there is a command to run; otherwise the exit code: 0 after --help and --version,
// kExitUsage for a mistake, which is printed with the most similar command or option.
std::optional<int> Parse(CLI::App& app, Context& context, int argc, char** argv);

// The innermost recognised command.
CLI::App* ChosenCommand(CLI::App& app);

// The hidden command `completion bash`.
void AddCompletionCommand(CLI::App& app, Context& context);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PARSE_H_

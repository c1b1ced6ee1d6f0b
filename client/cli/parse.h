// The command line, and what is said about one that cannot be read.
#ifndef PRIVATEMAIL_CLIENT_CLI_PARSE_H_
#define PRIVATEMAIL_CLIENT_CLI_PARSE_H_

#include <CLI/CLI.hpp>
#include <optional>

#include "client/cli/command.h"

namespace privatemail::client::cli {

// Nothing when there is a command to run; otherwise the program's exit code: 0 after --help and
// --version, kExitUsage for a mistake, which is told like any other error (TellError) and names the
// subcommand that was probably meant.
std::optional<int> Parse(CLI::App& app, Context& context, int argc, char** argv);

// The innermost command that was recognised.
const CLI::App& ChosenCommand(const CLI::App& app);

// Errors of the SDK and of the server begin with the name of a parameter, "delta must be given":
// those of a command that takes it as a flag begin with the flag, "--delta must be given".
absl::Status NamingItsFlag(const absl::Status& status, const CLI::App& command);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PARSE_H_

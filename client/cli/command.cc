#include "client/cli/command.h"

#include "common/base/short_help.h"
#include "common/base/status_macros.h"

namespace privatemail::client::cli {

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->footer(
      "Options that every command takes (--server, --trust, --state, --json, -v, ...) are listed "
      "by "
      "privatemail -v --help.");
  return command;
}

void MarkRare(CLI::App* command, absl::Span<const char* const> flags) {
  for (const char* flag : flags) command->get_option(flag)->group(kRareOptions);
}

absl::Status Finish(Context& context, const absl::StatusOr<Result>& result) {
  PM_RETURN_IF_ERROR(result.status());
  Print(*result, context.json, context.verbose);
  context.exit_code = result->exit_code;
  return absl::OkStatus();
}

}  // namespace privatemail::client::cli

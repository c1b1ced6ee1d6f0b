#include "client/cli/command.h"

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "privatemail/state_folder.h"

namespace privatemail::client::cli {

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->footer(
      "Options that every command takes (--server, --trust, --state, --json, ...) are listed by "
      "privatemail --help.");
  return command;
}

absl::Status Finish(Context& context, const absl::StatusOr<Result>& result) {
  PM_RETURN_IF_ERROR(result.status());
  Print(*result, context.json);
  context.exit_code = result->exit_code;
  return absl::OkStatus();
}

ClientLimits LimitsOf(const Context& context) {
  return {.max_memory = context.connection.max_memory,
          .max_computing = context.connection.deadline};
}

SearchOptions SearchOptionsOf(const Context& context) {
  return {.connection = context.connection,
          .state_folder = context.state_folder,
          .limits = LimitsOf(context)};
}

}  // namespace privatemail::client::cli

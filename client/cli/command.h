// The parts that subcommands of `privatemail` share: context, registration, state folder.
#ifndef PRIVATEMAIL_CLIENT_CLI_COMMAND_H_
#define PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/output.h"
#include "privatemail/client_limits.h"
#include "privatemail/search.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

// The shared options, and the run of the chosen subcommand.
struct Context {
  ConnectionOptions connection;
  std::string state_folder;  // ledger and last release; holds privacy state, mode 0700
  bool json = false;
  std::function<absl::Status()> run;
  int exit_code = 0;  // of a run that succeeds
};

// Adds a subcommand that also accepts the shared options.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description);

// Prints the result and stores its exit code.
absl::Status Finish(Context& context, const absl::StatusOr<Result>& result);
// For commands that print their results themselves.
inline absl::Status Finish(Context&, const absl::Status& status) { return status; }

// Runs `run(context, *options)` if the command is chosen: it returns StatusOr<Result> or Status.
template <typename Options, typename Run>
void SetRun(CLI::App* command, Context& context, const std::shared_ptr<Options>& options, Run run) {
  command->callback([&context, options, run] {
    context.run = [&context, options, run] {
      return Finish(context, run(std::as_const(context), *options));
    };
  });
}

void AddAuditCommand(CLI::App& app, Context& context);
void AddBudgetCommand(CLI::App& app, Context& context);
void AddCalibrateCommand(CLI::App& app, Context& context);
void AddCollectionCommands(CLI::App& app, Context& context);  // collection, build and health
void AddIngestCommand(CLI::App& app, Context& context);
void AddItemsCommand(CLI::App& app, Context& context);
void AddKeyCommand(CLI::App& app, Context& context);
void AddPageCommand(CLI::App& app, Context& context);
void AddPlanCommand(CLI::App& app, Context& context);
void AddQueryCommand(CLI::App& app, Context& context);
void AddReplayCommands(CLI::App& app, Context& context);  // explain and resend
void AddSensitivityCommand(CLI::App& app, Context& context);
void AddSnapshotCommands(CLI::App& app, Context& context);  // snapshot and restore

// --max-memory and --deadline, for clients of a collection.
ClientLimits LimitsOf(const Context& context);
SearchOptions SearchOptionsOf(const Context& context);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

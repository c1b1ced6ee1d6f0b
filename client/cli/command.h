// The parts that subcommands of `privatemail` share: context, registration, state folder.
#ifndef PRIVATEMAIL_CLIENT_CLI_COMMAND_H_
#define PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/output.h"
#include "privatemail/search.h"

namespace privatemail::client::cli {

// The shared options, and the run of the chosen subcommand.
struct Context : SearchOptions {
  bool json = false;
  bool verbose = false;
  std::function<absl::Status()> run;
  int exit_code = 0;  // of a run that succeeds
};

// Moves the flags to the group of options that few need, which --help shows with -v alone.
void MarkRare(CLI::App* command, absl::Span<const char* const> flags);

// Adds a subcommand that also accepts the shared options.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description);

// Prints the result and stores its exit code.
absl::Status Finish(Context& context, const absl::StatusOr<Result>& result);
// The same for commands that print their results themselves.
inline absl::Status Finish(Context&, const absl::Status& status) { return status; }

// Adds a subcommand that calls `run` with its options. They live as long as the app. `run` returns
// StatusOr<Result> or Status. AnyContext: const, unless it sets the exit code.
template <typename Status, typename AnyContext, typename Options>
std::pair<CLI::App*, std::remove_cvref_t<Options>*> AddCommand(
    CLI::App& parent, Context& context, const std::string& name, const std::string& description,
    Status (*run)(AnyContext& context, Options options)) {
  CLI::App* command = AddCommand(parent, name, description);
  auto options = std::make_shared<std::remove_cvref_t<Options>>();
  command->callback([&context, options, run] {
    context.run = [&context, options, run] { return Finish(context, run(context, *options)); };
  });
  return {command, options.get()};
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
void AddRestoreCommand(CLI::App& app, Context& context);
void AddSensitivityCommand(CLI::App& app, Context& context);
void AddSnapshotCommand(CLI::App& app, Context& context);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

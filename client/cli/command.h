// What every subcommand of `privatemail` shares.
#ifndef PRIVATEMAIL_CLIENT_CLI_COMMAND_H_
#define PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/guarantee.h"
#include "client/privacy/ledger.h"
#include "client/transport.h"

namespace privatemail::cli {

// Options that stand before or after any subcommand, and the work the chosen one does after
// parsing.
struct Context {
  ConnectionOptions connection;
  std::string state_folder;  // ledger and last release; holds privacy state, mode 0700
  bool json = false;
  std::function<absl::Status()> run;
};

// Adds a subcommand that accepts the shared options, too.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description);

// One per file.
void AddCollectionCommand(CLI::App& app, Context& context);
void AddIngestCommand(CLI::App& app, Context& context);
void AddBuildCommand(CLI::App& app, Context& context);
void AddQueryCommand(CLI::App& app, Context& context);
void AddBudgetCommand(CLI::App& app, Context& context);
void AddExplainCommand(CLI::App& app, Context& context);
void AddCalibrateCommand(CLI::App& app, Context& context);
void AddAuditCommand(CLI::App& app, Context& context);
void AddSensitivityCommand(CLI::App& app, Context& context);
void AddSampleImagesCommand(CLI::App& app, Context& context);

// A line of JSON on standard output, or whatever `text` prints for people.
void Answer(const Context& context, const nlohmann::json& json, const std::function<void()>& text);

nlohmann::json ToJson(const Guarantee& guarantee);
nlohmann::json ToJson(const Budget& budget);

// Opens the ledger in the state folder, which is made if it is not there.
absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const Context& context);

// A progress bar on standard error; silent unless that is a terminal, and for the first two
// seconds.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  void Show(int64_t done, int64_t total);

 private:
  std::string what_;
  double started_;
  double last_ = 0;
  bool shown_ = false;
};

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

// What every subcommand of `privatemail` shares.
#ifndef PRIVATEMAIL_CLIENT_CLI_COMMAND_H_
#define PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"
#include "privatemail/ledger.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

// Options that stand before or after any subcommand, and the work the chosen one does after
// parsing.
struct Context {
  ConnectionOptions connection;
  std::string state_folder;  // ledger and last release; holds privacy state, mode 0700
  bool json = false;
  std::function<absl::Status()> run;
  int exit_code = 0;  // of a run that succeeds
};

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;         // INVALID_ARGUMENT, whoever found it
inline constexpr int kExitSomeRejected = 3;  // the rest was acknowledged

// Adds a subcommand that accepts the shared options, too.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description);

// One per file.
void AddCollectionCommand(CLI::App& app, Context& context);
void AddIngestCommand(CLI::App& app, Context& context);
void AddBuildCommand(CLI::App& app, Context& context);
void AddItemsCommand(CLI::App& app, Context& context);
void AddSnapshotCommand(CLI::App& app, Context& context);
void AddRestoreCommand(CLI::App& app, Context& context);
void AddPlanCommand(CLI::App& app, Context& context);
void AddQueryCommand(CLI::App& app, Context& context);
void AddBudgetCommand(CLI::App& app, Context& context);
void AddExplainCommand(CLI::App& app, Context& context);
void AddRankCommand(CLI::App& app, Context& context);
void AddResendCommand(CLI::App& app, Context& context);
void AddCalibrateCommand(CLI::App& app, Context& context);
void AddAuditCommand(CLI::App& app, Context& context);
void AddSensitivityCommand(CLI::App& app, Context& context);
void AddSampleImagesCommand(CLI::App& app, Context& context);
void AddKeyCommand(CLI::App& app, Context& context);
void AddHealthCommand(CLI::App& app, Context& context);
void AddEvaluateCommands(CLI::App& app, Context& context);  // evaluate and tune

// JSON on one line, in ASCII: what a server says can hold no control character for a terminal.
// Bytes that are not UTF-8 become U+FFFD.
std::string Line(const nlohmann::json& json);

// A line of JSON on standard output, or whatever `text` prints for people.
void Answer(const Context& context, const nlohmann::json& json, const std::function<void()>& text);

nlohmann::json ToJson(const Guarantee& guarantee);
nlohmann::json ToJson(const Budget& budget);

// What stands for "not given" among the parameters of mechanisms is NaN, so a NaN that is given is
// refused here; INVALID_ARGUMENT names the field.
absl::Status TakeNumber(absl::string_view field, const std::optional<double>& given,
                        double* parameter);

// "warning: TEXT" on standard error.
void Warn(const std::string& text);
// "error: TEXT (CODE)" on standard error, and as JSON on standard output if that is asked for.
void TellError(const Context& context, const absl::Status& status);

// "1 release", "2 releases".
std::string Counted(uint64_t count, const std::string& singular);

// "epsilon 0.9 delta 0.0001": what is left of a budget, where less than one part in 10^12 of the
// grant, which is what sums of doubles leave over, is nothing.
std::string LeftOf(const LedgerEntry& entry);

// Opens the ledger in the state folder, which is made if it is not there. PERMISSION_DENIED: others
// may enter the folder; it is theirs who made it to close it.
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

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_COMMAND_H_

#include "client/cli/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/faiss_index.h"
#include "client/cli/flags.h"
#include "client/cli/parse.h"
#include "common/base/core_dumps.h"
#include "common/features/feature_extractor.h"

namespace privatemail::client::cli {
namespace {

// Flags override the environment.
void ApplyEnvironment(ConnectionOptions& connection) {
  if (connection.insecure) return;
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (connection.ca_file.empty() && connection.trust_fingerprint.empty()) {
    connection.trust_fingerprint = variable("PRIVATEMAIL_TRUST");
    if (connection.trust_fingerprint.empty()) connection.ca_file = variable("PRIVATEMAIL_CA");
  }
  if (connection.key_file.empty()) connection.key_file = variable("PRIVATEMAIL_KEY_FILE");
}

// Options that stand before or after any subcommand.
void AddSharedOptions(CLI::App& app, Context& context, double& deadline_seconds) {
  ConnectionOptions& connection = context.connection;
  app.add_option(
         "--server", connection.server,
         "HOST:PORT of the daemon, or of daemons that share one store: calls go round-robin to "
         "all addresses of the name")
      ->capture_default_str()
      ->envname("PRIVATEMAIL_SERVER");
  app.add_option(
      "--ca", connection.ca_file,
      "PEM file of authorities to trust; $PRIVATEMAIL_CA unless --trust or its variable is given");
  app.add_option(
      "--trust", connection.trust_fingerprint,
      "SHA-256 fingerprint of the only server certificate to trust; $PRIVATEMAIL_TRUST unless "
      "--ca or --insecure is given");
  app.add_option("--cert", connection.certificate_file,
                 "PEM certificate to show to a daemon with --client-ca");
  app.add_option("--cert-key", connection.certificate_key_file,
                 "PEM private key of --cert (mode 0600)");
  app.add_flag("--insecure", connection.insecure, "No TLS");
  app.add_option(
      "--key-file", connection.key_file,
      "File with your access key (mode 0600); $PRIVATEMAIL_KEY_FILE unless --insecure is "
      "given");
  app.add_option("--deadline", deadline_seconds,
                 "Seconds that a call may take, and computing for a query before its charge")
      ->capture_default_str();
  AddBytes(&app, "--max-memory", &connection.max_memory,
           "Bytes that an answer may take in memory, and that computing with what the server names "
           "(anchors, classes, dimensions) may take: 800M, 4G; if absent 1 GiB");
  app.add_option("--state", context.state_folder,
                 "Folder of the privacy ledger and the last release (mode 0700)")
      ->capture_default_str()
      ->envname("PRIVATEMAIL_STATE");
  app.add_flag("-v,--verbose", context.verbose, "Print all that is known of a result");
  app.add_flag("--json", context.json, "Print JSON, one line per result, errors included");
}

// The evaluation is a process of its own: its noise is seeded, and such noise must not be in a
// process with a network channel. Returns only on failure.
absl::Status ExecEvaluation(const CLI::App& command) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string built = self.parent_path() / "python";
  const std::string installed = self.parent_path().parent_path() / "lib/python3/dist-packages";
  std::string path = built;
  if (!std::filesystem::exists(path + "/privatemail/evaluation", error)) path = installed;
  if (!std::filesystem::exists(path + "/privatemail/evaluation", error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the Python package with the evaluation is neither in ", built, " nor in ", installed,
        ": cmake --preset release builds it (deploy/demo.sh leaves it out)"));
  }
  if (const char* const before = std::getenv("PYTHONPATH"); before != nullptr) {
    absl::StrAppend(&path, ":", before);
  }
  ::setenv("PYTHONPATH", path.c_str(), /*overwrite=*/1);
  // -P: no module is taken from the current folder.
  std::vector<std::string> words = {PRIVATEMAIL_PYTHON_PROGRAM, "-P", "-m",
                                    "privatemail.evaluation", command.get_name()};
  for (const std::string& word : command.remaining()) words.push_back(word);
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  ::execv(raw[0], raw.data());
  return absl::FailedPreconditionError(absl::StrCat("cannot start " PRIVATEMAIL_PYTHON_PROGRAM
                                                    ", which runs the evaluation: ",
                                                    std::strerror(errno)));
}

// Passes all further arguments on, --help included.
void AddEvaluateCommand(CLI::App& app, Context& context, const char* name,
                        const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->set_help_flag();
  command->prefix_command();
  command->callback(
      [&context, command] { context.run = [command] { return ExecEvaluation(*command); }; });
}

// In the order of their groups.
void AddCommands(CLI::App& app, Context& context) {
  const auto group = [&](const char* name) {
    for (CLI::App* command : app.get_subcommands(/*filter=*/{})) {
      if (command->get_group() == "Subcommands") command->group(name);
    }
  };
  AddQueryCommand(app, context);
  AddReplayCommands(app, context);
  AddPageCommand(app, context);
  group("Search");
  AddCollectionCommands(app, context);
  AddIngestCommand(app, context);
  AddItemsCommand(app, context);
  AddSnapshotCommand(app, context);
  AddRestoreCommand(app, context);
  AddKeyCommand(app, context);
  group("Serve");
  AddBudgetCommand(app, context);
  AddPlanCommand(app, context);
  AddCalibrateCommand(app, context);
  AddSensitivityCommand(app, context);
  AddAuditCommand(app, context);
  group("Privacy");
  AddEvaluateCommand(
      app, context, "evaluate",
      "Rerun the papers' experiments on your data (python3 -m privatemail.evaluation)");
  AddEvaluateCommand(app, context, "tune",
                     "Search for settings on your own rows; on public anchors this spends no "
                     "budget (python3 -m privatemail.evaluation tune)");
  group("Measure");
  AddCompletionCommand(app, context);
}

absl::Status Run(Context& context, double deadline_seconds) {
  if (!(deadline_seconds > 0 && deadline_seconds < 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--deadline must be a positive number of seconds below 1e9, but is ", deadline_seconds));
  }
  context.connection.deadline = absl::Seconds(deadline_seconds);
  context.limits = {.max_memory = context.connection.max_memory,
                    .max_computing = context.connection.deadline};
  ApplyEnvironment(context.connection);
  try {
    return context.run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory on this machine");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("unexpected: ", error.what()));
  }
}

}  // namespace

int RunProgram(int argc, char** argv) {
  DisableCoreDumps();
  ::umask(077);  // files may reveal queries
  // A write beyond the file size limit (ulimit -f) fails like one to a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // Failures are printed from their status; gRPC's own log would repeat them.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  constexpr char kTryModel[] = "--try-model";
  if (argc == 4 && std::string_view(argv[1]) == kTryModel) return TryModel(argv[2], argv[3]);
  if (argc == 3 && std::string_view(argv[1]) == kTryFaissIndex) return TryFaissIndex(argv[2]);
  SetModelTrial({"/proc/self/exe", kTryModel});
  Context context;
  double deadline_seconds = 30;

  CLI::App app(
      "PrivateMail: find the most similar items without revealing the query to the server");
  app.name("privatemail");
  app.require_subcommand(1);
  app.set_version_flag("--version", "privatemail " PRIVATEMAIL_VERSION);
  AddSharedOptions(app, context, deadline_seconds);
  app.footer(
      "Exit codes: 0 done; 1 failed or refused; 2 invalid command line, value or file; 3 done, but "
      "some rows were rejected, or ids, labels or paths of a filter not found.");
  AddCommands(app, context);
  RequireValidWords(app);
  if (const std::optional<int> end = Parse(app, context, argc, argv)) return *end;

  absl::Status status = Run(context, deadline_seconds);
  if (status.ok() && !std::cout.flush()) {
    status = absl::DataLossError(
        "standard output cannot be written, so what was found is not all there; `privatemail "
        "resend` prints the answer of a release again, at no cost");
  }
  if (status.ok()) return context.exit_code;
  PrintError(WithFlagName(status, *ChosenCommand(app)), context.json);
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailure;
}

}  // namespace privatemail::client::cli

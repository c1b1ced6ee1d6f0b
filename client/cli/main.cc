// privatemail: the client's and operator's command line.
#include <sys/stat.h>

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/parse.h"

namespace {

std::string DefaultStateFolder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0') {
    return std::string(state) + "/privatemail";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/privatemail";
}

}  // namespace

int main(int argc, char** argv) {
  using privatemail::cli::Context;
  ::umask(077);  // whatever is written here may tell of queries
  // Every failure is told once, in the message of its status, and not in gRPC's words as well.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  Context context;
  context.state_folder = DefaultStateFolder();
  double deadline_seconds = 30;

  CLI::App app("PrivateMail: find the most similar items without telling the server what you hold");
  app.require_subcommand(1);
  app.set_version_flag("--version", "privatemail " PRIVATEMAIL_VERSION);
  app.add_option("--server", context.connection.server, "HOST:PORT of the daemon")
      ->capture_default_str()
      ->envname("PRIVATEMAIL_SERVER");
  app.add_option("--ca", context.connection.ca_file, "PEM file of authorities to trust");
  app.add_option("--trust", context.connection.trust_fingerprint,
                 "SHA-256 fingerprint of the one server certificate to trust")
      ->envname("PRIVATEMAIL_TRUST");
  app.add_option("--cert", context.connection.certificate_file,
                 "PEM certificate to show to a daemon with --client-ca");
  app.add_option("--cert-key", context.connection.certificate_key_file,
                 "PEM private key of --cert, readable by you alone");
  app.add_flag("--insecure", context.connection.insecure, "No TLS");
  app.add_option("--key-file", context.connection.key_file,
                 "File with the key that lets you in, readable by you alone");
  app.add_option("--deadline", deadline_seconds, "Seconds a call may take")->capture_default_str();
  app.add_option("--state", context.state_folder,
                 "Folder of the privacy ledger and the last release, yours alone (mode 0700)")
      ->capture_default_str()
      ->envname("PRIVATEMAIL_STATE");
  app.add_flag("--json", context.json, "Answer in JSON, one line a result, errors too");
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 some rows of an upload were rejected.");

  privatemail::cli::AddCollectionCommand(app, context);
  privatemail::cli::AddIngestCommand(app, context);
  privatemail::cli::AddBuildCommand(app, context);
  privatemail::cli::AddItemsCommand(app, context);
  privatemail::cli::AddQueryCommand(app, context);
  privatemail::cli::AddBudgetCommand(app, context);
  privatemail::cli::AddExplainCommand(app, context);
  privatemail::cli::AddResendCommand(app, context);
  privatemail::cli::AddCalibrateCommand(app, context);
  privatemail::cli::AddSensitivityCommand(app, context);
  privatemail::cli::AddAuditCommand(app, context);
  privatemail::cli::AddSampleImagesCommand(app, context);
  if (const std::optional<int> end = privatemail::cli::Parse(app, context, argc, argv)) return *end;

  context.connection.deadline = absl::Seconds(deadline_seconds);
  const bool usable = deadline_seconds > 0 && deadline_seconds < 1e9;
  const absl::Status status =
      usable ? context.run()
             : absl::InvalidArgumentError(absl::StrCat(
                   "--deadline must be a positive number of seconds below 1e9, but is ",
                   deadline_seconds));
  if (status.ok()) return context.exit_code;
  privatemail::cli::TellError(context, status);
  return privatemail::cli::kExitFailure;
}

#include "client/cli/command.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/queries/server_pair.h"
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

absl::Status CopyNumber(absl::string_view field, const std::optional<double>& given,
                        double* parameter) {
  if (!given.has_value()) return absl::OkStatus();
  if (std::isnan(*given)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must be a number, but is nan"));
  }
  *parameter = *given;
  return absl::OkStatus();
}

ClientLimits LimitsOf(const Context& context) {
  return {.max_memory = context.connection.max_memory,
          .max_computing = context.connection.deadline};
}

QuerySettings SettingsOf(const Context& context) {
  return {.state_folder = context.state_folder, .limits = LimitsOf(context)};
}

void AddSecondServer(CLI::App* command, const std::string& scheme, SecondServer* second) {
  ConnectionOptions& connection = second->connection;
  command->add_option("--second-server", second->server,
                      scheme +
                          "HOST:PORT of another operator's daemon with the same image; "
                          "private as long as the two operators do not share what they see");
  command->add_option("--second-ca", connection.ca_file, scheme + "--ca for the second server");
  command->add_option("--second-trust", connection.trust_fingerprint,
                      scheme + "--trust for the second server");
  command->add_option("--second-cert", connection.certificate_file,
                      scheme + "--cert for the second server");
  command->add_option("--second-cert-key", connection.certificate_key_file,
                      scheme + "--cert-key for the second server");
  command->add_option("--second-key-file", connection.key_file,
                      scheme +
                          "--key-file for the second server; the first's key is not sent "
                          "there");
}

absl::StatusOr<Transport> ConnectSecond(const Context& context, const SecondServer& second) {
  if (second.server.empty()) {
    return absl::InvalidArgumentError("--second-server must be given: another operator's server");
  }
  ConnectionOptions connection = second.connection;
  connection.server = second.server;
  connection.insecure = context.connection.insecure && connection.ca_file.empty() &&
                        connection.trust_fingerprint.empty();
  connection.deadline = context.connection.deadline;
  connection.max_memory = context.connection.max_memory;
  connection.cancelled = context.connection.cancelled;
  absl::StatusOr<Transport> transport = Transport::Create(connection);
  if (!transport.ok()) return WithSecondFlags(transport.status());
  return transport;
}

}  // namespace privatemail::client::cli

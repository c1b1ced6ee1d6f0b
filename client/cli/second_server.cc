#include "client/cli/second_server.h"

#include "absl/status/status.h"
#include "client/queries/server_pair.h"

namespace privatemail::client::cli {

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

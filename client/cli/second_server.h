// The options of the second operator's server, of commands that talk to two.
#ifndef PRIVATEMAIL_CLIENT_CLI_SECOND_SERVER_H_
#define PRIVATEMAIL_CLIENT_CLI_SECOND_SERVER_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

struct SecondServer {
  std::string server;  // empty: not given
  // Its authorities, certificates and key; the rest is as for the first. Without one of its own
  // options for TLS, --insecure holds for both.
  ConnectionOptions connection;
};
inline constexpr const char* kSecondServerFlags[] = {"--second-server",   "--second-ca",
                                                     "--second-trust",    "--second-cert",
                                                     "--second-cert-key", "--second-key-file"};

// scheme: how the options' help begins, "Two-server: "; may be empty.
void AddSecondServer(CLI::App* command, const std::string& scheme, SecondServer* second);

// INVALID_ARGUMENT: --second-server is not given. Errors of Transport::Create.
absl::StatusOr<Transport> ConnectSecond(const Context& context, const SecondServer& second);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SECOND_SERVER_H_

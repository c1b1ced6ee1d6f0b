// `privatemail query --scheme two-server`: searches at two operators' servers.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_TWO_SERVER_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_TWO_SERVER_H_

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/query_targets.h"
#include "client/queries/two_server_queries.h"
#include "privatemail/two_server_client.h"

namespace privatemail::client::cli {

// Options of this scheme only.
struct TwoServerFlags {
  SecondServer second;
  std::optional<TwoServerMode> mode = std::nullopt;  // by the image if absent
  std::optional<int64_t> lists = std::nullopt;
  bool trust_again = false;
};
inline constexpr const char* kTwoServerFlags[] = {"--mode", "--lists", "--trust-again"};

void AddTwoServerOptions(CLI::App* command, TwoServerFlags* flags);

struct TwoServerQuery {
  std::string collection;
  TargetOptions targets;  // without labels
  TwoServerFlags flags;
  TwoServerOptions options;  // mode and lists are those of the flags
};

nlohmann::json OutcomeJson(const TwoServerOutcome& outcome, const TwoServerQueries& queries,
                           const TwoServerOptions& options,
                           const std::vector<std::string>& warnings);

// Queries for each target in turn and prints each answer.
absl::Status QueryTwoServers(const Context& context, const TwoServerQuery& query);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_TWO_SERVER_H_

// `privatemail plan --second-server`: costs of searches at two operators.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_TWO_SERVER_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_TWO_SERVER_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/command.h"

namespace privatemail::client::cli {

// Bytes of scores, which are exact, and of numbers of lists. What lists find is not told: no server
// measures it. Errors of TwoServerQueries::Fetch.
absl::StatusOr<Result> PlanTwoServers(const Context& context, const std::string& collection,
                                      const SecondServer& second);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_TWO_SERVER_H_

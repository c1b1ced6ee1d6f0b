// What is said when a query, or some of a batch, failed.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_FAILURE_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_FAILURE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/query_outcome.h"

namespace privatemail::cli {

// The first failure, which stands for all; what the failures have cost, how the last release is
// sent again for nothing, and how many of the `queries` asked for were not sent and cost nothing.
// OK: all were answered.
absl::Status FailureOf(const std::vector<QueryOutcome>& outcomes, size_t queries);

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_FAILURE_H_

// Parts of `privatemail budget` that the page uses.
#ifndef PRIVATEMAIL_CLIENT_CLI_BUDGET_H_
#define PRIVATEMAIL_CLIENT_CLI_BUDGET_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/output.h"
#include "privatemail/ledger.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client::cli {

// Granted, spent and left of a collection and over all collections of its operators.
// server: Transport::identity. Errors of Ledger::Show.
absl::StatusOr<Result> BudgetReport(const v1::GetCollectionResponse& collection,
                                    const std::string& server, Ledger& ledger);

nlohmann::json ToJson(const LedgerChange& change);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_BUDGET_H_

// Plans of queries for cells as JSON, and in files that `privatemail query --plan` reads. Public.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "client/planning/query_plan.h"
#include "privatemail/search_request.h"

namespace privatemail::client::cli {

nlohmann::json PlanJson(const QueryPlan& plan);

// The content of a plan's file, one line of JSON, of a request for cells with all their settings
// and a fingerprint.
std::string PlanText(const SearchRequest& query);

// Gives the request the settings of a plan for its collection: all that PlanText writes.
// INVALID_ARGUMENT naming the file and the field: the file cannot be read or is no plan, or the
//   plan is for another collection.
absl::Status ReadPlan(const std::string& path, SearchRequest* request);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_H_

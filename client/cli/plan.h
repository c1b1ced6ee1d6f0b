// Parts of `privatemail plan` that the page uses.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_H_

#include <nlohmann/json_fwd.hpp>

#include "client/planning/query_plan.h"

namespace privatemail::client::cli {

nlohmann::json PlanJson(const QueryPlan& plan);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_H_

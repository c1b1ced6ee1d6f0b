// The outcome of a query by the joint scheme, as JSON, text and report.
#ifndef PRIVATEMAIL_CLIENT_CLI_JOINT_OUTCOME_H_
#define PRIVATEMAIL_CLIENT_CLI_JOINT_OUTCOME_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/images.h"
#include "client/cli/report.h"
#include "client/queries/joint_queries.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {

// The report's and the terminal's view of a query. Plots need the server's anchors in the answer.
ReportQuery ToReport(const JointOutcome& outcome, const JointClient& client,
                     const std::optional<LocalGallery>& gallery);

nlohmann::json OutcomeJson(const JointOutcome& outcome, const PublicParameters& parameters,
                           const std::vector<std::string>& warnings, const ReportQuery& report);

std::string ToText(const JointOutcome& outcome, const PublicParameters& parameters,
                   const ReportQuery& report);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_JOINT_OUTCOME_H_

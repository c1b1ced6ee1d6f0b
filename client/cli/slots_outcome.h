// The outcome of a query by a scheme with a slot a class, as JSON, text and report.
#ifndef PRIVATEMAIL_CLIENT_CLI_SLOTS_OUTCOME_H_
#define PRIVATEMAIL_CLIENT_CLI_SLOTS_OUTCOME_H_

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/images.h"
#include "client/cli/query_batch.h"
#include "client/cli/report.h"
#include "client/cli/scheme.h"
#include "privatemail/joint_client.h"

namespace privatemail::client::cli {

struct SlotsOutcome : Attempt {
  std::string class_name;
  PreparedQuery prepared;
  v1::RetrieveResponse response;
  QueryResult result;                          // once finished
  std::optional<RadiusStats> radius_meaning;   // with --radius: its meaning on the collection
  std::optional<ExpectedAlignment> alignment;  // nullopt: not known
  // Without a label: ClassRanker::ExpectedRecall. NaN: none.
  double class_recall = std::numeric_limits<double>::quiet_NaN();

  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const { return std::max(0.0, round_trip_ms - server_ms()); }
};

// The report's and the terminal's view of a query. Plots need the server's anchors in the answer.
ReportQuery ToReport(const SlotsOutcome& outcome, const SlotSchemeClient& client,
                     const std::optional<LocalGallery>& gallery);

nlohmann::json OutcomeJson(const SlotsOutcome& outcome, const PublicParameters& parameters,
                           Scheme scheme, const std::vector<std::string>& warnings,
                           const ReportQuery& report);

std::string ToText(const SlotsOutcome& outcome, const PublicParameters& parameters,
                   const ReportQuery& report);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_SLOTS_OUTCOME_H_

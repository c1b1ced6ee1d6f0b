// What became of one private query, and how it is told. Private: it names the target.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/attempt.h"
#include "client/cli/local_gallery.h"
#include "client/cli/query_targets.h"
#include "client/cli/report.h"
#include "privatemail/ledger.h"
#include "privatemail/joint_client.h"
#include "privatemail/transport.h"

namespace privatemail::client::cli {

struct QueryOutcome : Attempt {
  std::string class_name;
  PreparedQuery prepared;
  v1::RetrieveResponse response;
  QueryResult result;  // once finished
  // Where the guarantee has a radius: what that means on the collection.
  std::optional<RadiusStats> radius_meaning;

  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const;
};

// Keeps what is about to leave, for `explain` and `resend`.
using KeepFn = std::function<absl::Status(const v1::RetrieveRequest&)>;

// SendAll of attempt.h for the schemes with slots: charges, releases, keeps and sends each target.
std::vector<QueryOutcome> SendAll(const SlotSchemeClient& client, const KeepFn& keep, const SendFn& send,
                                  Ledger& ledger, const std::vector<NamedTarget>& targets,
                                  const QueryOptions& options);

// Reads the answer into outcome->result, or says in outcome->status why it cannot be.
void Finish(const SlotSchemeClient& client, QueryOutcome* outcome);

nlohmann::json ToJson(const std::vector<QueryMatch>& matches);
// Null where there is none.
nlohmann::json ToJson(const std::optional<RadiusStats>& meaning);
nlohmann::json ToJson(const QueryOutcome& outcome, const std::vector<std::string>& warnings,
                      const ReportQuery& report);

// The page's and the terminal's view of it. Plots need the server's anchors in the answer.
ReportQuery Describe(const QueryOutcome& outcome, const SlotSchemeClient& client,
                     const std::optional<LocalGallery>& gallery);

void Print(const QueryOutcome& outcome, const ReportQuery& report);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_

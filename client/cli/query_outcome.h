// What became of one private query, and how it is told. Private: it names the target.
#ifndef PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_
#define PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/local_gallery.h"
#include "client/cli/query_targets.h"
#include "client/cli/report.h"
#include "client/privacy/ledger.h"
#include "client/retrieval_client.h"
#include "client/transport.h"

namespace privatemail::cli {

struct QueryOutcome {
  NamedTarget target;
  std::string class_name;
  PreparedQuery prepared;
  LedgerEntry ledger;  // after the charge
  v1::RetrieveResponse response;
  QueryResult result;   // once finished
  absl::Status status;  // the first thing that went wrong
  bool kept = false;    // `resend` finds it, unless another was kept since
  double release_ms = 0;
  double round_trip_ms = 0;

  double server_ms() const { return response.server_seconds() * 1e3; }
  double network_ms() const;
  bool charged() const { return prepared.request.has_release(); }
};

// Keeps what is about to leave, for `explain` and `resend`.
using KeepFn = std::function<absl::Status(const v1::RetrieveRequest&)>;

// Charges, releases, keeps and sends each target, and looks at no answer: a client that stopped, or
// took its time, over an answer would tell the server by its next request what the answer had
// spoilt. Only where there is no answer does it end, with the failure as the last outcome, before
// the rest of the budget is spent for nothing: when a query cannot be prepared or kept, the server
// not be reached, or when it refuses what it would refuse of the next one, too (a limit, the key,
// the state of the collection). That depends on the status alone, which the server chose without
// knowing any slot and would have chosen for every slot, so that ending tells it nothing.
std::vector<QueryOutcome> SendAll(const RetrievalClient& client, const KeepFn& keep,
                                  const SendFn& send, Ledger& ledger,
                                  const std::vector<NamedTarget>& targets,
                                  const QueryOptions& options);

// Reads the answer into outcome->result, or says in outcome->status why it cannot be.
void Finish(const RetrievalClient& client, QueryOutcome* outcome);

nlohmann::json ToJson(const std::vector<QueryMatch>& matches);
nlohmann::json ToJson(const QueryOutcome& outcome, const std::vector<std::string>& warnings,
                      const ReportQuery& report);

// The page's and the terminal's view of it. Plots need the server's anchors in the answer.
ReportQuery Describe(const QueryOutcome& outcome, const RetrievalClient& client,
                     const std::optional<LocalGallery>& gallery);

void Print(const QueryOutcome& outcome, const ReportQuery& report);

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_QUERY_OUTCOME_H_

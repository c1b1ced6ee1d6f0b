// Searches at two operators' servers: checks of both, sending at the same time, answers.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_QUERIES_H_
#define PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_QUERIES_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queries/query_batch.h"
#include "client/queries/server_pair.h"
#include "client/queries/two_server_calls.h"
#include "privatemail/transport.h"
#include "privatemail/two_server_client.h"

namespace privatemail::client {

struct TwoServerOutcome : Attempt {
  TwoServerGuarantee guarantee;
  std::vector<int64_t> lists;  // fetched; none for scores
  TwoServerResult result;      // once finished
  uint64_t bytes_up = 0;       // of both servers together
  uint64_t bytes_down = 0;
};

// Requests leave at multiples of this time after the answer before them: 50 ms and again as much
// for each MiB of a server's longest answer, which is public and takes far less time to rank.
std::chrono::milliseconds DepartureInterval(uint64_t answer_bytes);

// Queries to one collection at two servers. Held by the client; sees targets only while Run runs.
class TwoServerQueries {
 public:
  // Fetches parameters and anchors of A and descriptions of the image of both.
  // trust_again: forgets that answers of the pair were wrong.
  // INVALID_ARGUMENT: both have one access key (CheckDifferentKeys).
  // FAILED_PRECONDITION: the two are one server (CheckDifferentServers) or one operator, serve
  //   different images, or the pair's answers were wrong.
  // Errors of a server name it, here and in the following.
  static absl::StatusOr<TwoServerQueries> Fetch(const Halves<const Transport*>& servers,
                                                QuerySettings settings,
                                                const std::string& collection, bool trust_again);

  const v1::GetCollectionResponse& collection() const { return collection_; }
  const TwoServerImage& image() const { return image_; }
  const ServerPair& servers() const { return pair_; }
  // Sets what was not given: the mode (lists with epsilon or a number of lists, else that of the
  // image) and the number of lists (1 with epsilon, which more lists share, else 4).
  // INVALID_ARGUMENT: a number of lists for scores.
  absl::Status Complete(std::optional<TwoServerMode> mode, std::optional<int64_t> lists,
                        TwoServerOptions* options) const;

  // Makes the client for this mode; call it before the following. For scores with the table of ids
  // and labels, which is fetched once an image and cached in the state folder.
  absl::Status CreateClient(TwoServerMode mode, const WarnFunction& warn);
  const TwoServerClient& client() const { return *client_; }

  // Queries each target in turn. Both servers get their half at the same time; if one does not
  // answer, nothing else is sent. A wrong answer ends the batch after all fetches of its query.
  // Errors of the checks before the first query; those of a query are in its outcome.
  absl::StatusOr<std::vector<TwoServerOutcome>> Run(const std::vector<NamedTarget>& targets,
                                                    const TwoServerOptions& options,
                                                    const WarnFunction& warn) const;

 private:
  using Clock = std::chrono::steady_clock;

  TwoServerQueries(Halves<Transport> servers, QuerySettings settings,
                   v1::GetCollectionResponse collection,
                   std::vector<v1::GetAnchorsResponse> anchors, ServerPair pair,
                   TwoServerImage image)
      : servers_(std::move(servers)),
        settings_(std::move(settings)),
        collection_(std::move(collection)),
        anchors_(std::move(anchors)),
        pair_(std::move(pair)),
        image_(std::move(image)) {}

  absl::StatusOr<v1::ImageTable> ReadTable(const std::string& bytes) const;
  absl::StatusOr<v1::ImageTable> FetchTable(const WarnFunction& warn) const;
  std::chrono::milliseconds IntervalOf(const TwoServerOptions& options) const;
  absl::Status Query(const TwoServerOptions& options, Ledger* ledger, Clock::time_point* arrived,
                     TwoServerOutcome* outcome) const;
  // Records that the servers' answers were wrong, and returns why.
  absl::Status RecordWrong(const absl::Status& wrong) const;
  absl::Status Send(PreparedTwoServerQuery query, BitSource& bits, Clock::time_point* arrived,
                    TwoServerOutcome* outcome) const;
  template <typename Request>
  absl::StatusOr<Halves<std::string>> SendHalves(const Halves<Request>& requests,
                                                 TwoServerOutcome* outcome) const;

  Halves<Transport> servers_;  // pinned to their certificates
  QuerySettings settings_;
  v1::GetCollectionResponse collection_;
  std::vector<v1::GetAnchorsResponse> anchors_;
  ServerPair pair_;
  TwoServerImage image_;
  std::optional<TwoServerClient> client_;
  Clock::time_point last_contact_;  // with either server, before the queries
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_TWO_SERVER_QUERIES_H_

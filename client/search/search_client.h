// Searches from a collection's name and targets to the matches, in the order that keeps them
// private.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_SEARCH_CLIENT_H_
#define PRIVATEMAIL_CLIENT_SEARCH_SEARCH_CLIENT_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queries/query_batch.h"
#include "client/search/row_tables.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/encrypted_client.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// Private.
struct SearchTarget {
  Eigen::RowVectorXf features;
  std::optional<int32_t> label = std::nullopt;  // only items with this label; never sent
};

// Bytes of the messages of a search, by what they carry.
struct SearchBytes {
  uint64_t queries = 0;   // up, without keys
  uint64_t keys = 0;      // up, once a session
  uint64_t table = 0;     // down, what has changed since the last search
  uint64_t payloads = 0;  // down, likewise
  uint64_t scores = 0;    // down, with the header
};

struct SearchAnswer {
  PublicParameters parameters;
  int delta = 0;
  std::vector<std::vector<QueryMatch>> matches;  // of each target, nearest first
  uint64_t items = 0;                            // that were compared
  uint64_t items_version = 0;
  // These name the row table (RootDigest, 32 bytes), the same for every searcher. There is one
  // unless the items changed while the server answered the messages of the search.
  std::vector<std::string> root_digests;
  EncryptedGuarantee guarantee;
  SearchBytes bytes;
  double prepare_ms = 0;  // of all targets
  double answer_ms = 0;
  double finish_ms = 0;
};

// SearchWork says in public sizes what a search decrypts, ranks and shows.
struct SearchWork {
  int64_t queries = 1;
  int64_t blocks = 1;          // of 2,048 rows
  int64_t k = 8;               // matches of each query
  int64_t payload_bytes = 0;   // that the matches could have at most
  int64_t filtered_bytes = 0;  // that a filter reads
};

// Searches depart at multiples of this time after the last answer. It is 10 ms; for each query .5
// ms and .02 ms * log2(2 k) for each block, and a microsecond for each match; a millisecond for
// each megabyte of payloads, and 50 ms for each megabyte that a filter reads. On an idle machine
// decryption, ranking and filters take a fraction of it for every order of the scores.
std::chrono::milliseconds SearchInterval(const SearchWork& work);

// A session of encrypted searches at one server. Held by the client; sees targets and scores only
// while Search runs. Thread-safe; of the process that made it.
//
// Privacy (PRIVACY.md section 9): what is sent, how much, when and how often depends on public
// sizes and on the server alone. All messages of a search precede its decryption; the first message
// of a search after another one leaves on a schedule, which hides how long its decryption took.
class SearchClient {
 public:
  // settings.state_folder holds cached row tables and the last search for `explain`.
  // PERMISSION_DENIED: the folder cannot be created, or others may enter it.
  static absl::StatusOr<std::unique_ptr<SearchClient>> Create(Transport transport,
                                                              QuerySettings settings);

  // The nearest items of each target, exactly but for the errors of PRIVACY.md section 9. Targets
  // share messages as far as their size allows. A target's own label replaces ranking.label.
  // warn: sees warnings, that files cannot be written.
  // INVALID_ARGUMENT: ranking; features of another dimension, not finite, or zero with the
  // metric cosine; no target.
  // FAILED_PRECONDITION: the collection does not offer this, or has no items; or this process was
  //   forked from the one that made the client.
  // RESOURCE_EXHAUSTED: the answers, or the payloads of as many matches of any rows, take more than
  //   settings.limits.max_memory.
  // UNAVAILABLE: no random bits; the server keeps asking for the keys.
  // DATA_LOSS and others: as Transport::SearchEncrypted, and RowTables::Take.
  absl::StatusOr<SearchAnswer> Search(const std::string& collection,
                                      const std::vector<SearchTarget>& targets,
                                      const EncryptedRanking& ranking, const WarnFunction& warn);

  // Sleeps until the next departure after a search of this client. Call it before any other message
  // to the server that can follow a search: how long it took to decrypt, rank and show the answer
  // depends on the target. CANCELLED.
  absl::Status WaitForDeparture();

  // Waits for the next departure, because the server also sees when a connection ends.
  ~SearchClient();

 private:
  using Clock = std::chrono::steady_clock;

  // A secret key, and whether the server has received its evaluation keys.
  struct Session {
    std::shared_ptr<const EncryptedSession> keys;
    bool uploaded = false;
  };
  // The answer to one message, and the table of the same version.
  struct Exchanged {
    EncryptedAnswer answer;
    RowTable table;
  };
  struct Prepared {
    std::vector<v1::SearchEncryptedRequest> requests;
    std::vector<EncryptedState> states;  // of all targets
  };

  SearchClient(Transport transport, QuerySettings settings);

  // A fork has no secret, and would wait forever for gRPC's threads.
  absl::Status CheckProcess() const;
  absl::StatusOr<std::shared_ptr<const EncryptedSession>> SessionOf(int delta);
  std::shared_ptr<RowTables> TablesOf(const std::string& collection_uuid);
  absl::StatusOr<Prepared> Prepare(const v1::GetCollectionResponse& collection,
                                   const EncryptedClient& client,
                                   const std::vector<SearchTarget>& targets, bool with_payloads);
  absl::Status SaveForExplain(const v1::GetCollectionResponse& collection, const Prepared& prepared,
                              const std::vector<std::string>& root_digests) const;
  absl::StatusOr<EncryptedAnswer> Send(v1::SearchEncryptedRequest* request, SearchBytes* bytes);

  const pid_t process_;
  const Transport transport_;
  const QuerySettings settings_;
  std::mutex mutex_;                                          // guards the following
  std::map<int, Session> sessions_;                           // by delta
  std::map<std::string, std::shared_ptr<RowTables>> tables_;  // by collection UUID
  std::optional<Clock::time_point> arrived_;                  // of the last message of a search
  // The interval of the next departures: that of the last search, or the longest while searches
  // overlap.
  std::chrono::milliseconds interval_ = SearchInterval({});
  int searching_ = 0;  // calls of Search
};

// How many queries share a message, by public sizes: at most 16 MiB of queries, 64 MiB of scores.
int64_t QueriesPerMessage(int64_t dimensions, int delta, int64_t rows);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_SEARCH_CLIENT_H_

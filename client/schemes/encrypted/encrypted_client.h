// Client of exact searches under ring-LWE encryption, of which the server learns nothing
// (PRIVACY.md section 9).
//
//   caller                 client (private)                             server
//     |-- Prepare(target) ------->|
//     |<- request, state ---------| fresh seed and errors
//     |-- SearchEncrypted(request): as often as needed ------------------->|
//     |<- row table, encrypted score of every row -------------------------|
//     |-- Finish(state, scores, table) -->| decrypt, rank
//     |<- matches ----------------|
//
// SearchClient (privatemail/search.h) does all of it.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_CLIENT_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/encrypted/row_table.h"
#include "client/schemes/encrypted/secret_key.h"
#include "client/schemes/search_interval.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/match.h"

namespace privatemail::v1 {
class GetCollectionResponse;
}

namespace privatemail::client {

// The part of a collection's description that this scheme needs. Public; the server chose it.
struct EncryptedCollection {
  std::string name, uuid, fingerprint;
  int64_t dimensions = 0;
  Metric metric = Metric::kCosine;
  int64_t delta = 0;                                      // dimensions of a chunk of a query
  uint64_t rows = 0, table_bytes = 0, payload_bytes = 0;  // of v1.EncryptedStatus
};
// FAILED_PRECONDITION: the collection does not offer this scheme; the fingerprint does not match
// the parameters. DATA_LOSS: the parameters are malformed.
absl::StatusOr<EncryptedCollection> ReadEncryptedCollection(
    const v1::GetCollectionResponse& collection);

// The number of queries that share a message, by public sizes: at most 16 MiB of queries and 64 MiB
// of scores.
int64_t QueriesPerMessage(int64_t dimensions, int delta, int64_t rows);

// One secret key with its evaluation keys, for chunks of `delta` dimensions. Held by the client;
// private. The secret stays in memory, is wiped, and is refused in a forked process. Immutable,
// thread-safe.
class EncryptedSession {
 public:
  // delta: one of lattice::kDeltas. UNAVAILABLE: no random bits. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::shared_ptr<const EncryptedSession>> Create(int delta, BitSource& bits);
  ~EncryptedSession();
  EncryptedSession(const EncryptedSession&) = delete;
  EncryptedSession& operator=(const EncryptedSession&) = delete;

  int delta() const { return delta_; }
  // Public: what the server needs to compute with queries of this session, and its SHA-256.
  const std::string& keys() const { return keys_; }
  const std::string& keys_digest() const { return keys_digest_; }

 private:
  friend class EncryptedClient;
  EncryptedSession(int delta, std::unique_ptr<const SecretKey> secret, std::string keys);

  int delta_;
  std::unique_ptr<const SecretKey> secret_;
  std::string keys_;
  std::string keys_digest_;
};

// Secret state of a query between Prepare and Finish. It cannot be stored, copied or sent.
class EncryptedState {
 public:
  EncryptedState(EncryptedState&&) = default;
  EncryptedState& operator=(EncryptedState&&) = default;

 private:
  friend class EncryptedClient;
  EncryptedState(std::shared_ptr<const EncryptedSession> session, double target_norm)
      : session_(std::move(session)), target_norm_(target_norm) {}

  std::shared_ptr<const EncryptedSession> session_;
  double target_norm_;
};

struct PreparedEncryptedQuery {
  EncryptedQuery request;  // all that leaves the machine of the target
  EncryptedState state;
};

// Whether a payload may match. Takes the same time for every payload of a size.
using MatchesFilter = std::function<bool(const std::string& payload)>;

// The rows of a table that hold an item and, if there is a filter, a payload that matches it. The
// table then has payloads. They are the same for all targets of an answer.
std::vector<uint32_t> CandidateRows(const RowTable& table, const MatchesFilter& filter = nullptr);

// The work of decrypting and ranking an answer of one message to so many targets.
SearchWork RankingWork(const RowTable& table, int64_t targets, bool with_payloads);

// How rows are ranked on this machine. The server sees nothing of it but whether payloads are
// fetched, of all items: with_payloads and a filter need them.
struct EncryptedRanking {
  int64_t k = 8;
  bool with_payloads = false;                   // in the matches
  std::optional<int32_t> label = std::nullopt;  // only items with it; not kNoLabel
  const std::vector<uint32_t>* rows = nullptr;  // of CandidateRows; null: without a filter
};

// Client of one collection. Held by the client; sees targets only while Prepare runs and scores
// only while Finish runs. Immutable, thread-safe, no network.
class EncryptedClient {
 public:
  // FAILED_PRECONDITION: the collection has no items yet, or names another delta than those of
  // lattice::kDeltas; or an error of ReadEncryptedCollection.
  static absl::StatusOr<EncryptedClient> Create(EncryptedCollection collection);
  static absl::StatusOr<EncryptedClient> Create(const v1::GetCollectionResponse& collection);

  const EncryptedCollection& collection() const { return collection_; }
  int delta() const { return static_cast<int>(collection_.delta); }
  int64_t queries_per_message() const;

  // RESOURCE_EXHAUSTED: answers to so many targets take more than max_memory.
  absl::Status CheckAnswerMemory(size_t targets, bool with_payloads, int64_t max_memory) const;

  // INVALID_ARGUMENT: k or the label.
  absl::Status CheckRanking(const EncryptedRanking& ranking) const;

  // Encrypts a target. No branch and no address depends on it, if it is usable.
  // INVALID_ARGUMENT: features of another dimension, zero or not finite; a session of another
  // delta. FAILED_PRECONDITION: the session is of another process. UNAVAILABLE: no random bits.
  absl::StatusOr<PreparedEncryptedQuery> Prepare(const Eigen::RowVectorXf& features,
                                                 std::shared_ptr<const EncryptedSession> session,
                                                 BitSource& bits) const;

  // Decrypts and ranks: nearest first by the metric, ties by row. Call it when everything is sent
  // and received: its time depends on the scores.
  // scores: kAnswerBytes for each block of the table; any bytes of this size are accepted. table:
  //   of the same answer.
  // Distances and similarities of matches are rounded to 4 decimals of the cosine. No score
  // may reach the operator: unrounded ones, and any of a lying server, tell the session's secret.
  // INVALID_ARGUMENT: scores of another size, or errors of CheckRanking. FAILED_PRECONDITION: the
  // session is of another process. RESOURCE_EXHAUSTED: no memory.
  absl::StatusOr<std::vector<Match>> Finish(EncryptedState state, absl::string_view scores,
                                            const RowTable& table,
                                            const EncryptedRanking& ranking) const;

 private:
  explicit EncryptedClient(EncryptedCollection collection) : collection_(std::move(collection)) {}

  EncryptedCollection collection_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_ENCRYPTED_ENCRYPTED_CLIENT_H_

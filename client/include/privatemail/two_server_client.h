// Client of two operators' servers, neither of which learns anything of a query unless they share
// what they see (PRIVACY.md section 9).
//
//   caller            client (private)               Ledger      server A          server B
//     |-- Prepare(target) -->|                          |            |                 |
//     |                      |-- Charge, with epsilon ->|            |                 |
//     |                      | fresh shares             |            |                 |
//     |<- requests, state ---|                                       |                 |
//     |-- Transport::Score or FetchLists, at the same time --------->|---------------->|
//     |-- Rank(answers) ---->|                                       |                 |
//     |                      | check all, rank; fresh shares         |                 |
//     |<- requests for payloads, or none ---|                        |                 |
//     |-- Transport::FetchLists, at the same time ------------------>|---------------->|
//     |-- Finish(answers) -->|                                       |                 |
//     |<- matches, or what was wrong in any answer
#ifndef PRIVATEMAIL_TWO_SERVER_CLIENT_H_
#define PRIVATEMAIL_TWO_SERVER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/bit_source.h"
#include "privatemail/cell_scheme.h"
#include "privatemail/client_limits.h"
#include "privatemail/guarantee.h"
#include "privatemail/joint_client.h"
#include "privatemail/ledger.h"
#include "privatemail/two_server_image.h"
#include "privatemail/v1/retrieval.pb.h"
#include "privatemail/v1/two_server.pb.h"

namespace privatemail::client {

// Public options of a query; choose them independently of the target, and never by a result.
struct TwoServerOptions {
  TwoServerMode mode = TwoServerMode::kLists;  // see TwoServerImage::DefaultMode
  int64_t partition = 0;                       // of lists
  int64_t lists = 4;                           // t: lists to fetch, at most 64
  // Set: the fetched lists are a choice of the cells mechanism with w = t, charged to the ledger,
  // so that both servers together learn no more than this epsilon tells. Lists only.
  std::optional<double> epsilon = std::nullopt;
  int64_t k = 8;  // matches; with payloads at most 64, and the servers see it
  // Fetches k lists of payloads, whatever was found. Not with epsilon, which does not cover them.
  bool with_payloads = false;
};

// How well a server's view is hidden.
enum class Secrecy {
  kPerfect,        // the view has the same distribution for every target
  kComputational,  // no efficient adversary tells targets apart, under `assumption`
};

// Bounds on the knowledge that servers gain of a query beyond its public options.
struct TwoServerGuarantee {
  // Each server alone: nothing.
  Halves<Secrecy> one = {Secrecy::kPerfect, Secrecy::kPerfect};
  std::string assumption;  // of computational secrecy; empty: not needed
  std::string both;        // what both learn if they share what they see: "the query"
  std::optional<Guarantee> both_bounded = std::nullopt;  // a bound on that, with epsilon
  std::string source;
};

// Secret state of a query between Prepare and Finish: it holds the target and what was found. It
// cannot be stored or sent.
class TwoServerState {
 public:
  TwoServerState(TwoServerState&&) = default;
  TwoServerState& operator=(TwoServerState&&) = default;

  const TwoServerOptions& options() const { return options_; }
  const TwoServerGuarantee& guarantee() const { return guarantee_; }
  // Ascending; what both servers learn together. Empty: mode scores.
  const std::vector<int64_t>& lists() const { return lists_; }
  // The first error in the answers that Rank has read.
  const absl::Status& answers() const { return answers_; }

 private:
  friend class TwoServerClient;
  TwoServerState() = default;

  TwoServerOptions options_;
  TwoServerGuarantee guarantee_;
  RowVector point_;
  std::vector<int64_t> lists_;
  absl::Status answers_;  // the first error of any answer, reported by Finish
  std::vector<QueryMatch> matches_;
  std::vector<uint32_t> rows_;  // of the matches
  int64_t candidates_ = 0;
  std::vector<int64_t> payload_lists_;  // ascending, one for each fetch
};

struct PreparedTwoServerQuery {
  // All that leaves the machine. Each half goes to its own server only; after a failure it may be
  // sent there again as the same bytes.
  std::variant<Halves<v1::ScoreRequest>, Halves<v1::FetchListsRequest>> requests;
  TwoServerState state;
};

struct TwoServerResult {
  // Nearest first, ties by the smaller row. Squared distances between unit features: to the decoded
  // codes for lists; 2 - 2 cosine for scores, with the errors of PRIVACY.md section 9.
  std::vector<QueryMatch> matches;
  int64_t candidates = 0;  // items ranked
  uint64_t items_version = 0;
};

// Client of one image. Held by the client; sees targets only while Prepare, Rank and Finish run.
// Immutable, thread-safe, no network.
class TwoServerClient {
 public:
  // collection, anchors: responses of GetCollection and GetAnchors of either server.
  // table: of ReadImageTable; needed for scores only.
  // FAILED_PRECONDITION: the collection is not built or has no cells.
  // DATA_LOSS: malformed, or not of one collection; a label of the table is none of the
  //   collection's.
  // RESOURCE_EXHAUSTED: a query would take more than limits.max_memory.
  static absl::StatusOr<TwoServerClient> Create(const v1::GetCollectionResponse& collection,
                                                const std::vector<v1::GetAnchorsResponse>& anchors,
                                                TwoServerImage image,
                                                std::optional<v1::ImageTable> table = std::nullopt,
                                                const ClientLimits& limits = {});

  const PublicParameters& parameters() const { return scheme_.parameters(); }
  const TwoServerImage& image() const { return image_; }

  // Public checks of Prepare alone. INVALID_ARGUMENT: an option. FAILED_PRECONDITION: scores are
  // not allowed or their table is missing; lists of items that are coordinates (cell code none).
  // RESOURCE_EXHAUSTED: the answers would take more than limits.max_memory.
  absl::Status CheckOptions(const TwoServerOptions& options) const;

  // Makes the two requests. ledger: charged with epsilon only, otherwise it may be null.
  // Nothing is charged if a check fails first.
  // Errors of CheckOptions; with epsilon of CellScheme::Release.
  // INVALID_ARGUMENT: features of another dimension, zero or not finite. UNAVAILABLE: no random
  // bits.
  absl::StatusOr<PreparedTwoServerQuery> Prepare(const Eigen::RowVectorXf& features,
                                                 const TwoServerOptions& options, Ledger* ledger,
                                                 BitSource& bits) const;

  // Checks and ranks the servers' answers, and returns the requests for payloads; nullopt: none are
  // fetched. Their number does not depend on the answers, whose errors are kept for Finish; then
  // lists are fetched at random. UNAVAILABLE: no random bits.
  absl::StatusOr<std::optional<Halves<v1::FetchListsRequest>>> Rank(
      const Halves<std::string>& answers, TwoServerState* state, BitSource& bits) const;

  // payloads: the answers to Rank's requests, empty if there were none.
  // DATA_LOSS: an answer to any request is wrong. By which server cannot be told; see
  // PRIVACY.md section 9 for what they learn when the pair is used again.
  absl::StatusOr<TwoServerResult> Finish(TwoServerState state,
                                         const Halves<std::string>& payloads = {}) const;

 private:
  TwoServerClient(std::string name, CellScheme scheme, TwoServerImage image,
                  std::optional<v1::ImageTable> table, int64_t max_memory);

  absl::Status CheckScores(const TwoServerOptions& options) const;
  absl::Status CheckLists(const TwoServerOptions& options) const;
  // Upper estimate in bytes of both answers, their sum and what is decoded of it.
  double AnswerMemory(const TwoServerOptions& options) const;
  absl::StatusOr<Halves<v1::ScoreRequest>> ShareQuery(const RowVector& point,
                                                      BitSource& bits) const;
  absl::StatusOr<Halves<v1::FetchListsRequest>> ShareFetches(uint32_t group,
                                                             const std::vector<int64_t>& lists,
                                                             BitSource& bits) const;
  absl::Status RankScores(const Halves<std::string>& answers, TwoServerState* state) const;
  absl::Status RankLists(const Halves<std::string>& answers, TwoServerState* state) const;
  absl::StatusOr<std::vector<int64_t>> PayloadLists(const TwoServerState& state,
                                                    BitSource& bits) const;
  absl::Status ReadPayloads(const Halves<std::string>& answers, TwoServerState* state) const;
  bool FetchesPayloads(const TwoServerOptions& options) const;

  std::string name_;
  CellScheme scheme_;
  TwoServerImage image_;
  std::shared_ptr<const v1::ImageTable> table_;  // null: not given
  int64_t max_memory_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TWO_SERVER_CLIENT_H_

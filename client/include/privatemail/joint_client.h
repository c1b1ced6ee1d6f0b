// The SDK: a request and a secret state out of a query, a result out of a response. No network
// inside.
#ifndef PRIVATEMAIL_JOINT_CLIENT_H_
#define PRIVATEMAIL_JOINT_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/answer_check.h"
#include "privatemail/bit_source.h"
#include "privatemail/ledger.h"
#include "privatemail/joint_scheme.h"
#include "common/base/matrix.h"
#include "common/embedding/alignment.h"
#include "common/wire/codec.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Where the iterations after the noise run. They read nothing private; both ways give the same
// coordinates but for one rounding to float, which what travels goes through.
enum class PostProcessing {
  kClient,  // the server gets finished coordinates
  kServer,  // the client's work ends with the noise
};

struct QueryOptions {
  PrivacyCost cost;  // no default: epsilon and delta must be set
  int64_t k = 8;     // matches wanted
  PostProcessing post_processing = PostProcessing::kClient;
  bool with_payloads = false;   // fetched for every slot, so asking names none of them
  bool with_alignment = false;  // also fetch the server's anchor coordinates, for plots
  // Only items whose payload fits, in every slot. The server reads it in clear and learns the
  // paths, the values and which part of its gallery is of interest: the guarantee does not cover
  // it. Choose it independently of the target, its class included; where it depends on them, it
  // tells them.
  std::optional<v1::PayloadFilter> filter = std::nullopt;
};

// What the client keeps while the request travels. Private: it names the slot.
struct QueryState {
  int64_t slot = 0;
  ExpectedAnswer asked;
  Guarantee guarantee;
  double sensitivity = 0;
  double noise_stddev = 0;
};

struct PreparedQuery {
  v1::RetrieveRequest request;  // all that leaves the machine; sending it again costs nothing
  QueryState state;
};

struct QueryMatch {
  std::string id;
  int32_t label = 0;
  double squared_distance = 0;  // in the server's embedding coordinates
  std::string payload;          // JSON text; empty unless asked for
};

struct QueryResult {
  std::vector<QueryMatch> matches;  // of the target's own slot, nearest first
  bool truncated = false;           // the gallery holds fewer than k items
  Similarity alignment;             // release to server coordinates
  double relative_residual = 0;     // of the anchors: 0 perfect, 1 no better than their mean
  uint64_t embedding_version = 0;
  uint64_t changes_since_embedding = 0;  // of items, which the answer does not show yet
};

// What GetCollection told of a collection beside its parameters.
struct ServedCollection {
  std::string name;
  uint64_t embedding_version = 0;  // this one or a later one answers
  int64_t max_k = kMaxNeighbors;   // kMaxNeighbors at most: what the daemon refuses costs nothing

  static ServedCollection From(const v1::GetCollectionResponse& collection);
};

// One collection, ready for private queries by a scheme with a slot for every class. Lives on the
// client; immutable and thread-safe. Sees targets only while Prepare runs.
class SlotSchemeClient {
 public:
  virtual ~SlotSchemeClient() = default;

  virtual const PublicParameters& parameters() const = 0;

  // As JointScheme's.
  virtual absl::StatusOr<int32_t> GuessLabel(const Eigen::RowVectorXf& features) const = 0;

  // What a radius means on this collection: how many pairs of anchors are within it.
  virtual RadiusStats DescribeRadius(double radius) const = 0;

  // Charges the ledger, releases, and packs what the server shall see. INVALID_ARGUMENT for k < 1
  // or above what the daemon answers, for a filter that the server would refuse, and for an option
  // of no use to the scheme. Otherwise errors of the scheme's Release. Nothing is charged when a
  // check fails first.
  virtual absl::StatusOr<PreparedQuery> Prepare(const Target& target, const QueryOptions& options,
                                                Ledger& ledger, BitSource& bits) const = 0;

  // Coordinates of a request's rows as the server aligns them: as sent, or post-processed where the
  // server is to do it. INVALID_ARGUMENT: a request without a matrix.
  virtual absl::StatusOr<Matrix> Coordinates(const v1::RetrieveRequest& request) const = 0;

  // FAILED_PRECONDITION naming both when `identity` is not the extractor the collection was made
  // with.
  absl::Status CheckExtractor(absl::string_view identity) const;

  // The target's own matches out of the answer. DATA_LOSS: the response does not fit the request
  // (CheckAnswer): the same for whichever slot it is asked.
  absl::StatusOr<QueryResult> Finish(const QueryState& state,
                                     const v1::RetrieveResponse& response) const;
};

// What follows from a scheme: JointScheme or AnchoredScheme.
template <typename Scheme>
class SlotSchemeClientBase : public SlotSchemeClient {
 public:
  const Scheme& scheme() const { return scheme_; }
  const PublicParameters& parameters() const override { return scheme_.parameters(); }
  absl::StatusOr<int32_t> GuessLabel(const Eigen::RowVectorXf& features) const override {
    return scheme_.GuessLabel(features);
  }
  RadiusStats DescribeRadius(double radius) const override { return scheme_.DescribeRadius(radius); }

 protected:
  SlotSchemeClientBase(ServedCollection served, Scheme scheme)
      : served_(std::move(served)), scheme_(std::move(scheme)) {}
  const ServedCollection& served() const { return served_; }

 private:
  ServedCollection served_;
  Scheme scheme_;
};

// By the joint scheme (joint_scheme.h).
class JointClient : public SlotSchemeClientBase<JointScheme> {
 public:
  // From what GetCollection and GetAnchors returned. INVALID_ARGUMENT or DATA_LOSS: the answers are
  // malformed or do not belong together (JointScheme::Create). FAILED_PRECONDITION: the collection
  // is not built, so that a query would spend its budget and find nothing.
  static absl::StatusOr<JointClient> Create(
      const v1::GetCollectionResponse& collection,
      const std::vector<v1::GetAnchorsResponse>& anchors,
      const std::optional<Anchors>& dummies = std::nullopt);

  // JointScheme::Release, then the post-processing if it runs here, with the errors of PostProcess.
  absl::StatusOr<PreparedQuery> Prepare(const Target& target, const QueryOptions& options,
                                        Ledger& ledger, BitSource& bits) const override;
  absl::StatusOr<Matrix> Coordinates(const v1::RetrieveRequest& request) const override;

 private:
  using SlotSchemeClientBase::SlotSchemeClientBase;
};

// The matches of one slot out of an answer: JointClient::Finish for whoever kept the request
// and knows its slot. slot < C. Errors as there.
absl::StatusOr<QueryResult> ReadAnswer(const PublicParameters& parameters, int64_t slot,
                                       const ExpectedAnswer& asked, const v1::RetrieveResponse& response);

// What a request of either scheme says beside its rows. INVALID_ARGUMENT: k, or the filter.
absl::Status CheckQueryOptions(const QueryOptions& options, const ServedCollection& served);
v1::RetrieveRequest RequestWithoutRows(const ServedCollection& served,
                                       const PublicParameters& parameters,
                                       const QueryOptions& options);

// The message that carries a release: a function of the release and public values alone. Errors:
// those of PostProcess.
absl::StatusOr<v1::RetrieveRequest> PackRequest(const ServedCollection& served,
                                                const JointScheme& scheme,
                                                const FloatMatrix& release,
                                                const QueryOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_JOINT_CLIENT_H_

// Client of the joint scheme.
//
//   caller             client (private)             Ledger          server (sees requests only)
//     |-- Prepare(target) -->|                         |                    |
//     |                      |-- Charge(guarantee) --->|                    |
//     |                      |<- durable --------------|                    |
//     |                      | sample noise, pack rows |                    |
//     |<- request, state ----|                                              |
//     |-- Transport::Retrieve(request): as often as needed, no new cost --->|
//     |<- response: matches of every slot ----------------------------------|
//     |-- Finish(state, response) -->| check all slots, keep the target's   |
//     |<- matches -------------------|                                      |
#ifndef PRIVATEMAIL_JOINT_CLIENT_H_
#define PRIVATEMAIL_JOINT_CLIENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/alignment.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/answer_check.h"
#include "privatemail/bit_source.h"
#include "privatemail/joint_scheme.h"
#include "privatemail/ledger.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The party that runs the iterations after the noise (post-processing). Both give the same
// coordinates up to one rounding to float.
enum class PostProcessing {
  kClient,  // the request carries finished coordinates
  kServer,  // the request carries the noisy rows
};

// Public options of a query; choose them independently of the target.
struct QueryOptions {
  PrivacyCost cost;  // no default: epsilon and delta must be set
  int64_t k = 8;     // matches
  PostProcessing post_processing = PostProcessing::kClient;
  bool with_payloads = false;   // for every slot, so that the server does not learn which one
  bool with_alignment = false;  // also the server's anchor coordinates, for plots
  // Restricts the matches of every slot to items whose payload fits. Sent in clear and not covered
  // by the guarantee: a filter that depends on the target or its class reveals it.
  std::optional<v1::PayloadFilter> filter = std::nullopt;
};

// Secret state between Prepare and Finish: it names the target's class.
struct QueryState {
  std::vector<ClassPlaces> places;  // whose matches are read, in this order
  ExpectedAnswer expected;
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
  int32_t label = 0;            // or kNoLabel (common/items/item_label.h)
  double squared_distance = 0;  // in the server's embedding coordinates
  std::string payload;          // JSON text; empty unless requested
  // Of encrypted searches: the cosine, or the inner product unless the metric is cosine.
  std::optional<double> similarity = {};
};

struct QueryResult {
  std::vector<QueryMatch> matches;  // of the places' classes in turn, each nearest first
  bool truncated = false;           // the gallery holds fewer than k items
  Similarity alignment;             // release to server coordinates
  double relative_residual = 0;     // of the anchors: 0 perfect, 1 no better than their mean
  uint64_t embedding_version = 0;
  uint64_t changes_since_embedding = 0;  // items changed since the embedding was built
};

// The rest of the answers of GetCollection and GetAnchors, beside parameters and anchors.
struct ServedCollection {
  std::string name;
  uint64_t embedding_version = 0;  // the oldest that may answer
  int64_t max_k = kMaxNeighbors;   // checked before a query is charged; at most kMaxNeighbors
  // P x embedding_dim: the anchors in the server's embedding; nullopt: the server sends none (it
  // is older, or cells with code none are being built).
  std::optional<Matrix> anchor_coordinates = std::nullopt;

  // Errors of JoinCoordinates.
  static absl::StatusOr<ServedCollection> From(const PublicParameters& parameters,
                                               const v1::GetCollectionResponse& collection,
                                               const std::vector<v1::GetAnchorsResponse>& anchors);
};

// Client of one collection by the joint scheme (joint_scheme.h). Held by the client; sees targets
// only while Prepare and AllotClasses run. Immutable, thread-safe, no network.
class JointClient {
 public:
  // From the responses of GetCollection and GetAnchors.
  // INVALID_ARGUMENT, DATA_LOSS: malformed, or not of one collection (see JointScheme::Create).
  // FAILED_PRECONDITION: the collection is not built.
  // RESOURCE_EXHAUSTED: a query would take more than limits.max_memory.
  static absl::StatusOr<JointClient> Create(const v1::GetCollectionResponse& collection,
                                            const std::vector<v1::GetAnchorsResponse>& anchors,
                                            const std::optional<Anchors>& dummies = std::nullopt,
                                            const ClientLimits& limits = {});

  const JointScheme& scheme() const { return scheme_; }
  const PublicParameters& parameters() const { return scheme_.parameters(); }

  // See JointScheme.
  absl::StatusOr<std::vector<ClassPlaces>> AllotClasses(const Eigen::RowVectorXf& features,
                                                        int64_t k, int64_t classes) const;
  const ClassRanker& class_ranker() const { return scheme_.class_ranker(); }
  RadiusStats DescribeRadius(double radius) const { return scheme_.DescribeRadius(radius); }
  // How well this client's releases align with the server's embedding. nullopt: the server sends no
  // coordinates of its anchors. FAILED_PRECONDITION: they cannot be aligned at all.
  absl::StatusOr<std::optional<ExpectedAlignment>> ExpectAlignment() const;
  // Check it before you pay. FAILED_PRECONDITION: the above, or a recall below kMinExpectedRecall.
  absl::Status CheckAlignment() const;

  // Charges the ledger, releases and packs the request; nothing is charged if a check fails first.
  // INVALID_ARGUMENT: k < 1 or above the server's max_k, or a malformed filter. Otherwise as
  //   JointScheme::Release, and after the charge as PostProcess.
  // DEADLINE_EXCEEDED, after the charge: post-processing takes longer than limits.max_computing.
  absl::StatusOr<PreparedQuery> Prepare(const Target& target, const QueryOptions& options,
                                        Ledger& ledger, BitSource& bits) const;

  // The request's rows after all post-processing, as the server aligns them: (C + anchors) x
  // embedding_dim. INVALID_ARGUMENT: the request has no matrix.
  absl::StatusOr<Matrix> Coordinates(const v1::RetrieveRequest& request) const;

  // Coordinates of JointScheme::ReleaseOfDummy, for comparison on this machine; no request carries
  // them.
  absl::StatusOr<Matrix> CoordinatesOfDummy(int64_t slot, const PrivacyCost& cost,
                                            BitSource& bits) const;

  // FAILED_PRECONDITION naming both if `identity` is not the collection's extractor.
  absl::Status CheckExtractor(absl::string_view identity) const;

  // The matches of the places' classes. DATA_LOSS: CheckAnswer refuses the response, whichever slot
  // the target is in.
  absl::StatusOr<QueryResult> Finish(const QueryState& state,
                                     const v1::RetrieveResponse& response) const;

 private:
  JointClient(ServedCollection served, JointScheme scheme)
      : served_(std::move(served)), scheme_(std::move(scheme)) {}

  ServedCollection served_;
  JointScheme scheme_;
};

// JointClient::Finish for a stored request. places: slots in [0, C). An item that several
// classes' slots found is returned once. A class with fewer matches than places leaves the rest to
// the classes after it, then to those before it.
absl::StatusOr<QueryResult> ReadAnswer(const PublicParameters& parameters,
                                       const std::vector<ClassPlaces>& places,
                                       const ExpectedAnswer& expected,
                                       const v1::RetrieveResponse& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_JOINT_CLIENT_H_

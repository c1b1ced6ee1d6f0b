// Searches by the scheme joint (joint_scheme.h): from the published collection to the matches.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SEARCH_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/schemes/answer_check.h"
#include "client/schemes/expected_alignment.h"
#include "client/schemes/joint/joint_scheme.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/scheme_search.h"
#include "privatemail/client_limits.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The public side of a collection, which searches share. Immutable, thread-safe.
struct JointCollection {
  v1::GetCollectionResponse published;
  JointScheme scheme;
  // P x embedding_dim: the anchors in the server's embedding; nullopt: the server sends none,
  // because it is building.
  std::optional<Matrix> anchor_coordinates;

  // From the responses of GetCollection and GetAnchors. own: see JointScheme::Create.
  // INVALID_ARGUMENT, DATA_LOSS: malformed, or not of one collection (see JointScheme::Create).
  // Before the anchors are fetched:
  // FAILED_PRECONDITION: the collection is not built, or has no classes.
  // RESOURCE_EXHAUSTED: a search would take more than limits.max_memory.
  static absl::StatusOr<std::shared_ptr<const JointCollection>> Create(
      const v1::GetCollectionResponse& collection, const FetchAnchors& fetch_anchors,
      const OwnRows& own, const ClientLimits& limits);

  // Whether scheme and coordinates are those of what the server publishes now.
  bool IsOf(const v1::GetCollectionResponse& now) const {
    return anchor_coordinates.has_value() &&
           now.embedding_version() == published.embedding_version() &&
           now.fingerprint() == published.fingerprint() &&
           now.parameters().SerializeAsString() == published.parameters().SerializeAsString();
  }

  // nullopt: the server sends no coordinates of its anchors. FAILED_PRECONDITION: they cannot be
  // aligned at all, or own anchors cannot be compared without coordinates.
  absl::StatusOr<std::optional<ExpectedAlignment>> ExpectAlignment() const;

  // The most matches of a search, as the server publishes it.
  int64_t max_k() const;
};

// The slot of a label. INVALID_ARGUMENT: it has none; the message does not name the label, which is
// private. of: the target, such as " for photo.jpg".
absl::StatusOr<int64_t> SlotOfPrivateLabel(const PublicParameters& parameters, int32_t label,
                                           absl::string_view of = "");

// The request that carries a release: a function of the release and of public values alone.
// Errors of PostProcess; DEADLINE_EXCEEDED: it takes longer than the scheme's limits.
absl::StatusOr<v1::RetrieveRequest> PackRelease(const JointCollection& collection,
                                                const FloatMatrix& release,
                                                const SearchRequest& request);

// Reads the matches of the places' classes into `result`, each item once. A class with fewer
// matches than places leaves the rest to the classes after it, then to those before it.
// places: slots in [0, C). DATA_LOSS: CheckAnswer refuses the response, whichever slots are read.
absl::Status ReadJointAnswer(const PublicParameters& parameters,
                             const std::vector<ClassPlaces>& places, const ExpectedAnswer& expected,
                             const v1::RetrieveResponse& response, SearchResult* result);

inline constexpr char kNoCoordinates[] =
    "the server sends no coordinates of its anchors, because cells are being built";

class JointSearch : public SchemeSearch {
 public:
  // request must outlive the search.
  // INVALID_ARGUMENT naming the field: out of range; a label that the collection does not have, or
  //   that is missing where the mechanism does not hide the class.
  // FAILED_PRECONDITION: public data shows that little would be found, unless
  //   request.accept_misalignment.
  // DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED: ranking the classes of targets without a label would
  //   exceed the limits.
  static absl::StatusOr<std::unique_ptr<SchemeSearch>> Create(
      std::shared_ptr<const JointCollection> collection, const SearchRequest& request);

  absl::StatusOr<PreparedSearch> Prepare(size_t first, size_t count, const ChargeFunction& charge,
                                         BitSource& bits) override;
  SearchWork WorkOf(const SearchAnswer& answer) const override;
  absl::Status Finish(PreparedSearch prepared, const SearchAnswer& answer,
                      absl::Span<SearchResult> results) const override;

 private:
  JointSearch(std::shared_ptr<const JointCollection> collection, const SearchRequest& request)
      : collection_(std::move(collection)), request_(request) {}

  absl::Status CheckCost();
  absl::Status CheckLabels() const;
  absl::Status RankClasses();
  absl::Status ExpectAlignment();
  void AddExpectations(const absl::Status& misalignment);

  std::shared_ptr<const JointCollection> collection_;
  const SearchRequest& request_;
  PrivacyCost cost_;
  std::vector<std::vector<ClassPlaces>> places_;  // of each target, to read matches of. Private
  std::optional<ExpectedAlignment> alignment_;    // nullopt: not known
  std::optional<double> class_recall_;            // of targets without a label
  std::optional<RadiusStats> radius_meaning_;
};

// The members of a result that only this scheme has. Private.
void AddJointJson(const SearchResponse& response, const SearchResult& result, nlohmann::json* json);
// The content of a message, row by row. DATA_LOSS, INVALID_ARGUMENT: it is malformed.
absl::StatusOr<nlohmann::json> ExplainJoint(const v1::RetrieveRequest& message,
                                            const PublicParameters& parameters);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_SEARCH_H_

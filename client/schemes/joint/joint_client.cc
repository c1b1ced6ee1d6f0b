#include "privatemail/joint_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "client/schemes/joint/joint_request.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "client/schemes/release_noise.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/smlq.h"
#include "common/wire/codec.h"
#include "common/wire/payload_filter_proto.h"

namespace privatemail::client {
namespace {

// proto: accepted by CheckAnswer.
Similarity SimilarityFrom(const v1::Alignment& proto, int64_t dim) {
  return Similarity{proto.scale(), Eigen::Map<const Matrix>(proto.rotation().data(), dim, dim),
                    Eigen::Map<const RowVector>(proto.translation().data(), dim)};
}

// The matches of the places, each item once; see ReadAnswer.
std::vector<QueryMatch> MatchesOf(const std::vector<ClassPlaces>& places,
                                  const v1::RetrieveResponse& response) {
  std::vector<std::vector<const v1::Match*>> taken(places.size());
  std::vector<int> next(places.size());
  std::set<absl::string_view> seen;
  const auto take = [&](size_t i, int64_t count) {  // returns how many are missing
    const auto& matches = response.slots(static_cast<int>(places[i].slot)).matches();
    for (; count > 0 && next[i] < matches.size(); ++next[i]) {
      if (!seen.insert(matches[next[i]].id()).second) continue;
      taken[i].push_back(&matches[next[i]]);
      --count;
    }
    return count;
  };
  int64_t missing = 0;
  for (size_t i = 0; i < places.size(); ++i) missing = take(i, places[i].places + missing);
  for (size_t i = 0; i < places.size(); ++i) missing = take(i, missing);
  std::vector<QueryMatch> matches;
  for (const auto& of_class : taken) {
    for (const v1::Match* match : of_class) {
      matches.push_back({match->id(), match->label(), match->squared_distance(), match->payload()});
    }
  }
  return matches;
}

// INVALID_ARGUMENT: k or the filter.
absl::Status CheckQueryOptions(const QueryOptions& options, const ServedCollection& served) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("k", options.k, 1, served.max_k));
  if (!options.filter) return absl::OkStatus();
  return FromProto("filter", *options.filter).status();
}

v1::RetrieveRequest RequestWithoutRows(const ServedCollection& served,
                                       const PublicParameters& parameters,
                                       const QueryOptions& options) {
  v1::RetrieveRequest request;
  request.set_collection(served.name);
  request.set_embedding_version(served.embedding_version);
  request.set_fingerprint(Fingerprint(parameters));
  request.set_k(static_cast<uint32_t>(options.k));
  request.set_with_payloads(options.with_payloads);
  request.set_with_alignment(options.with_alignment);
  if (options.filter) *request.mutable_filter() = *options.filter;
  return request;
}

// The places of a target: its own, or all k of its label's class. target.label: of the collection.
std::vector<ClassPlaces> PlacesOf(const PublicParameters& parameters, const Target& target,
                                  int64_t k) {
  if (!target.places.empty()) return target.places;
  return {{.slot = *parameters.SlotOf(target.label), .places = k, .posterior = 1}};
}

}  // namespace

absl::StatusOr<JointClient> JointClient::Create(const v1::GetCollectionResponse& collection,
                                                const std::vector<v1::GetAnchorsResponse>& anchors,
                                                const std::optional<Anchors>& dummies,
                                                const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, JointQueryMemory(parameters), limits));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(JointScheme scheme,
                      JointScheme::Create(std::move(parameters), joined, dummies, limits));
  PM_ASSIGN_OR_RETURN(ServedCollection served,
                      ServedCollection::From(scheme.parameters(), collection, anchors));
  return JointClient(std::move(served), std::move(scheme));
}

absl::StatusOr<std::vector<ClassPlaces>> JointClient::AllotClasses(
    const Eigen::RowVectorXf& features, int64_t k, int64_t classes) const {
  return scheme_.AllotClasses(features, k, classes);
}

absl::StatusOr<std::optional<ExpectedAlignment>> JointClient::ExpectAlignment() const {
  if (!served_.anchor_coordinates.has_value()) return std::nullopt;
  absl::StatusOr<ExpectedAlignment> expected = scheme_.ExpectAlignment(*served_.anchor_coordinates);
  if (!expected.ok()) return expected.status();
  return *expected;
}

absl::Status JointClient::CheckExtractor(absl::string_view identity) const {
  return client::CheckExtractor(parameters(), identity);
}

absl::Status JointClient::CheckAlignment() const {
  PM_ASSIGN_OR_RETURN(const auto alignment, ExpectAlignment());
  return alignment.has_value() ? client::CheckAlignment(*alignment) : absl::OkStatus();
}

absl::StatusOr<ServedCollection> ServedCollection::From(
    const PublicParameters& parameters, const v1::GetCollectionResponse& collection,
    const std::vector<v1::GetAnchorsResponse>& anchors) {
  ServedCollection served{.name = collection.name(),
                          .embedding_version = collection.embedding_version()};
  PM_ASSIGN_OR_RETURN(served.anchor_coordinates, CoordinatesIfServed(parameters, anchors));
  // Older daemons do not set the field.
  if (collection.max_k() > 0) served.max_k = std::min<int64_t>(collection.max_k(), kMaxNeighbors);
  return served;
}

absl::StatusOr<v1::RetrieveRequest> PackRequest(const ServedCollection& served,
                                                const JointScheme& scheme,
                                                const FloatMatrix& release,
                                                const QueryOptions& options) {
  const EmbeddingSettings& settings = scheme.parameters().settings;
  v1::RetrieveRequest request = RequestWithoutRows(served, scheme.parameters(), options);
  if (options.post_processing == PostProcessing::kServer) {
    request.set_post_processing_steps(static_cast<uint32_t>(settings.steps));
    ToProto(release, request.mutable_release());
    return request;
  }
  // From the release on, so that whether the request is sent depends on it alone and not on the
  // time that computing with the target took.
  const ComputingDeadline deadline("post-processing of the release", scheme.limits());
  PM_ASSIGN_OR_RETURN(
      const Matrix coordinates,
      PostProcess(release.cast<double>(), scheme.label_graph(), settings, deadline.steps()));
  ToProto(coordinates, request.mutable_release());
  return request;
}

absl::StatusOr<PreparedQuery> JointClient::Prepare(const Target& target,
                                                   const QueryOptions& options, Ledger& ledger,
                                                   BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckQueryOptions(options, served_));
  PM_ASSIGN_OR_RETURN(const JointRelease release,
                      scheme_.Release(target, options.cost, ledger, bits));
  absl::StatusOr<v1::RetrieveRequest> request =
      PackRequest(served_, scheme_, release.rows, options);
  if (!request.ok()) return ChargedWithoutRelease(request.status());
  PreparedQuery prepared;
  prepared.request = *std::move(request);
  prepared.state.places = PlacesOf(parameters(), target, options.k);
  prepared.state.expected = {options.k, options.with_payloads, options.with_alignment};
  prepared.state.guarantee = release.guarantee;
  prepared.state.sensitivity = release.sensitivity;
  prepared.state.noise_stddev = release.noise_stddev;
  return prepared;
}

absl::StatusOr<Matrix> JointClient::Coordinates(const v1::RetrieveRequest& request) const {
  PM_ASSIGN_OR_RETURN(const FloatMatrix sent, FromProto("release", request.release()));
  if (request.post_processing_steps() == 0) return Matrix(sent.cast<double>());
  return PostProcess(sent.cast<double>(), scheme_.label_graph(), parameters().settings);
}

absl::StatusOr<Matrix> JointClient::CoordinatesOfDummy(int64_t slot, const PrivacyCost& cost,
                                                       BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const FloatMatrix rows, scheme_.ReleaseOfDummy(slot, cost, bits));
  return PostProcess(rows.cast<double>(), scheme_.label_graph(), parameters().settings);
}

absl::StatusOr<QueryResult> JointClient::Finish(const QueryState& state,
                                                const v1::RetrieveResponse& response) const {
  return ReadAnswer(parameters(), state.places, state.expected, response);
}

absl::StatusOr<QueryResult> ReadAnswer(const PublicParameters& parameters,
                                       const std::vector<ClassPlaces>& places,
                                       const ExpectedAnswer& asked,
                                       const v1::RetrieveResponse& response) {
  PM_RETURN_IF_ERROR(CheckAnswer(parameters, asked, response));
  QueryResult result;
  result.alignment = SimilarityFrom(response.alignment(), parameters.settings.embedding_dim);
  result.matches = MatchesOf(places, response);
  result.truncated = response.truncated();
  result.relative_residual = response.alignment().relative_residual();
  result.embedding_version = response.embedding_version();
  result.changes_since_embedding = response.changes_since_embedding();
  return result;
}

}  // namespace privatemail::client

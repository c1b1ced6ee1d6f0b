#include "privatemail/anchored_client.h"

#include "absl/status/status.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "common/base/status_macros.h"
#include "common/wire/codec.h"

namespace privatemail::client {

absl::StatusOr<AnchoredClient> AnchoredClient::Create(
    const v1::GetCollectionResponse& collection, const std::vector<v1::GetAnchorsResponse>& anchors,
    const std::optional<Anchors>& dummies, const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, AnchoredQueryMemory(parameters), limits));
  PM_ASSIGN_OR_RETURN(const Anchors joined, JoinAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(AnchoredScheme scheme,
                      AnchoredScheme::Create(std::move(parameters), joined, dummies, limits));
  PM_ASSIGN_OR_RETURN(ServedCollection served,
                      ServedCollection::From(scheme.parameters(), collection, anchors));
  return AnchoredClient(std::move(served), std::move(scheme));
}

absl::StatusOr<PreparedQuery> AnchoredClient::Prepare(const Target& target,
                                                      const QueryOptions& options, Ledger& ledger,
                                                      BitSource& bits) const {
  PM_RETURN_IF_ERROR(CheckQueryOptions(options, served()));
  if (options.post_processing == PostProcessing::kServer) {
    return absl::InvalidArgumentError(
        "post-processing by the server is of no use to the anchored scheme, whose rows are "
        "finished: expected none");
  }
  PM_ASSIGN_OR_RETURN(const AnchoredRelease release,
                      scheme().Release(target, options.cost, ledger, bits));
  PreparedQuery prepared;
  prepared.request = RequestWithoutRows(served(), parameters(), options);
  ToProto(release.rows, prepared.request.mutable_release());
  prepared.state = {.places = PlacesOf(parameters(), target, options.k),
                    .expected = {options.k, options.with_payloads, options.with_alignment},
                    .guarantee = release.guarantee,
                    .sensitivity = release.sensitivity,
                    .noise_stddev = release.noise_stddev};
  return prepared;
}

absl::StatusOr<Matrix> AnchoredClient::Coordinates(const v1::RetrieveRequest& request) const {
  PM_ASSIGN_OR_RETURN(const FloatMatrix sent, FromProto("release", request.release()));
  return Matrix(sent.cast<double>());
}

}  // namespace privatemail::client

// A collection as a client gets it from a server that it need not believe.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// The public parameters of one that answers. FAILED_PRECONDITION: it is not built, so that a query
// would spend its budget and find nothing, or the fingerprint is not theirs. DATA_LOSS: they are
// malformed.
absl::StatusOr<PublicParameters> ReadBuiltCollection(const v1::GetCollectionResponse& collection);

// Out of the chunks of GetAnchors. DATA_LOSS: one is malformed or has other than `columns`.
absl::StatusOr<Anchors> JoinAnchors(const std::vector<v1::GetAnchorsResponse>& chunks,
                                    int64_t columns);

// Where a server's embedding has the anchors.
struct AnchorCoordinates {
  Matrix rows;  // anchors x embedding_dim, finite
  uint64_t embedding_version = 0;
};

// Out of the same chunks, of a collection that sends coordinates. UNAVAILABLE: there are none yet.
// DATA_LOSS naming chunk and field: they are malformed, not for every anchor, or of several
// embeddings.
absl::StatusOr<AnchorCoordinates> JoinCoordinates(
    const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& chunks);

// Whether they are those that the parameters were published with. INVALID_ARGUMENT: shapes differ.
// DATA_LOSS: they do not have the published digest.
absl::Status CheckAnchors(const PublicParameters& parameters, const Anchors& anchors);

// INVALID_ARGUMENT: features of the client's own are given for the anchors, and items come as
// codes.
absl::Status CheckOwnAnchorsOfUse(const PublicParameters& parameters, bool given);

// The anchors scaled to length 1, in the features in which targets are given: those that were
// published or, where items come as coordinates (code none), `own`: features of the same anchors in
// the same order, by a model that the server need not have. INVALID_ARGUMENT: own are given for
// another code or are not one row an anchor; a row is zero or not finite.
absl::StatusOr<Matrix> OwnUnitAnchors(const PublicParameters& parameters, const Anchors& anchors,
                                      const std::optional<FloatMatrix>& own);

// FAILED_PRECONDITION naming both when `identity` is not the extractor the collection was made
// with.
absl::Status CheckExtractor(const PublicParameters& parameters, absl::string_view identity);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_

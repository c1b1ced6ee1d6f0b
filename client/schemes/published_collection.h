// Parsing and validation of a collection as an untrusted server publishes it.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// FAILED_PRECONDITION: the collection has no anchors or is not built (a query would be charged and
//   find nothing), or the fingerprint does not match the parameters.
// DATA_LOSS: the parameters are malformed.
absl::StatusOr<PublicParameters> ReadBuiltCollection(const v1::GetCollectionResponse& collection);

// Calls GetAnchors.
using FetchAnchors = std::function<absl::StatusOr<std::vector<v1::GetAnchorsResponse>>()>;

// Concatenates the chunks of GetAnchors. DATA_LOSS: a chunk is malformed, or the shape of all is
// not the parameters', which is checked before anything is allocated.
absl::StatusOr<Anchors> JoinAnchors(const PublicParameters& parameters,
                                    const std::vector<v1::GetAnchorsResponse>& chunks);

// Concatenates the anchors' coordinates in the server's embedding from the same chunks: anchors x
// embedding_dim, finite; nullopt: the server sends none.
// DATA_LOSS naming chunk and field: malformed, not one row an anchor, or of several embeddings.
absl::StatusOr<std::optional<Matrix>> JoinCoordinates(
    const PublicParameters& parameters, const std::vector<v1::GetAnchorsResponse>& chunks);

// DATA_LOSS: the anchors' shape or digest differs from the published one.
absl::Status CheckAnchors(const PublicParameters& parameters, const Anchors& anchors);

// FAILED_PRECONDITION naming both extractors if they differ.
absl::Status CheckExtractor(const PublicParameters& parameters, absl::string_view identity);

// INVALID_ARGUMENT naming `field` and row: no class of the collection has the label.
absl::Status CheckLabels(absl::string_view field, const PublicParameters& parameters,
                         const std::vector<int32_t>& labels);

// Per slot the rows of its class. labels: checked. INVALID_ARGUMENT: a class has no row.
absl::StatusOr<std::vector<std::vector<int64_t>>> RowsBySlot(absl::string_view field,
                                                             const PublicParameters& parameters,
                                                             const std::vector<int32_t>& labels);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_PUBLISHED_COLLECTION_H_

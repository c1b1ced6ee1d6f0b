// Embeds a gallery together with its anchors.
#ifndef PRIVATEMAIL_SERVER_ENGINE_EMBED_H_
#define PRIVATEMAIL_SERVER_ENGINE_EMBED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/embedding/embed_rows.h"
#include "common/numerics/point_source.h"
#include "common/embedding/public_parameters.h"
#include "server/store/types.h"

namespace privatemail::server {

// Embeds gallery and anchors together: rows are the gallery in its order, then the anchors in the
// published order, each scaled to length 1. The result takes ids, labels, payloads and (as
// items_version) the version over from the gallery; its own version is still 0. Statuses of
// EmbedRows. FAILED_PRECONDITION also: the gallery is empty, or anchors on whose coordinates no
// release could be aligned. INVALID_ARGUMENT: a row that is not unit scalable.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer);

// The same for features that are elsewhere: `gallery` has none, `points` are its rows and then
// the anchors', of length 1. feature_graph: as for EmbedRows.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, std::shared_ptr<const PointSource> points,
                                const StepObserver& observer,
                                const AffinityOperator* feature_graph = nullptr);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_EMBED_H_

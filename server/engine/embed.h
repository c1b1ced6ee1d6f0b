// The joint embedding of a gallery and its anchors.
#ifndef PRIVATEMAIL_SERVER_ENGINE_EMBED_H_
#define PRIVATEMAIL_SERVER_ENGINE_EMBED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/public_parameters.h"
#include "common/numerics/point_source.h"
#include "server/store/types.h"

namespace privatemail::server {

// Embeds the rows of the gallery, followed by the anchors in the published order, each scaled to
// length 1. points: these rows, if the gallery comes without features. The result has ids, labels,
// payloads and items_version of the gallery, and version 0. Errors of EmbedRows.
// The gallery may be empty, as that of a shard can be.
// FAILED_PRECONDITION also: anchor coordinates that cannot be aligned.
// INVALID_ARGUMENT: a row that is zero or not finite.
absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer,
                                std::shared_ptr<const PointSource> points = nullptr);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_EMBED_H_

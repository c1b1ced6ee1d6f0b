// What of a gallery an embedding can place.
#ifndef PRIVATEMAIL_SERVER_ENGINE_EMBEDDED_PART_H_
#define PRIVATEMAIL_SERVER_ENGINE_EMBEDDED_PART_H_

#include "absl/status/statusor.h"
#include "server/cells/cell_index.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"
#include "server/store/types.h"

namespace privatemail::server {

// Leaves in the gallery, which is no older than the embedding, the items that the embedding has and
// that are not hidden there (null: none), with the labels, payloads and version that they were
// embedded with, as searches find them; features stay what they are. Returns where these lie.
// FAILED_PRECONDITION: coordinates that no float holds, or that no longer tell how the anchors lie.
// O(n log n) time.
absl::StatusOr<CellCoordinates> KeepEmbeddedPart(const Retriever& retriever,
                                                 const HiddenRows* hidden, Gallery* gallery);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_EMBEDDED_PART_H_

// Coordinates of a gallery's items in an embedding, for cells.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CELL_COORDINATES_H_
#define PRIVATEMAIL_SERVER_ENGINE_CELL_COORDINATES_H_

#include "absl/status/statusor.h"
#include "server/cells/cell_index.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"
#include "server/store/types.h"

namespace privatemail::server {

// Removes items from the gallery that the embedding does not have or that are hidden there (null:
// none), and returns the coordinates of the others. These get the labels, payloads and version of
// the embedding and keep the gallery's features. The gallery must not be older than the embedding.
// FAILED_PRECONDITION: coordinates that overflow in float, or anchors that cannot be aligned in
// float. O(n log n).
absl::StatusOr<CellCoordinates> RestrictToEmbedding(const Retriever& retriever,
                                                    const HiddenRows* hidden, Gallery* gallery);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CELL_COORDINATES_H_

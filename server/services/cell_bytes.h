// Items that answer for cells, as they go over the wire.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_
#define PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/cells/cell_index.h"
#include "server/engine/hidden_rows.h"

namespace privatemail::server {

// A v1.RetrieveCellsResponse of these rows (< index.items()) but for those that are hidden (null:
// none), in the bytes that protobuf would write: what the index holds of them is copied, and
// nothing is made for an item. The block holds no `hidden`.
CellBlock CellBytes(const CellIndex& index, absl::Span<const int32_t> rows,
                    const HiddenRows* hidden, bool with_payloads);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CELL_BYTES_H_

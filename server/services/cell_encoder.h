// Encoder of v1.RetrieveCellsResponse.
#ifndef PRIVATEMAIL_SERVER_SERVICES_CELL_ENCODER_H_
#define PRIVATEMAIL_SERVER_SERVICES_CELL_ENCODER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/cells/cell_index.h"
#include "server/engine/hidden_rows.h"

namespace privatemail::server {

// A v1.RetrieveCellsResponse of `rows` (each < index.items()) without the `hidden` ones (null:
// none), byte for byte as protobuf would write it, but without a message object.
// EncodedBlock::hidden is left null.
EncodedBlock EncodeCellBlock(const CellIndex& index, absl::Span<const int32_t> rows,
                             const HiddenRows* hidden, bool with_payloads);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_CELL_ENCODER_H_

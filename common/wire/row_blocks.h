// The encoded blocks of an encrypted collection's row table, as a server sends them.
#ifndef PRIVATEMAIL_COMMON_WIRE_ROW_BLOCKS_H_
#define PRIVATEMAIL_COMMON_WIRE_ROW_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail {

// A serialised v1.RowTableBlock. id: of a row, empty for an empty row. norms: one for each row.
// labels: one for each row, kNoLabel for none, or no labels at all.
std::string EncodeRowTable(absl::FunctionRef<absl::string_view(size_t row)> id,
                           absl::Span<const float> norms, absl::Span<const int32_t> labels);

// A serialised v1.RowPayloadBlock.
std::string EncodeRowPayloads(size_t rows,
                              absl::FunctionRef<absl::string_view(size_t row)> payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_ROW_BLOCKS_H_

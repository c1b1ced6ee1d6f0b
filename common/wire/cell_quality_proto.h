// Conversion of measured quality to and from protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_CELL_QUALITY_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_CELL_QUALITY_PROTO_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/cells/cell_quality.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

void ToProto(const CellQuality& quality, v1::CellQuality* proto);

// INVALID_ARGUMENT naming the field: as Validate for so many partitions; curves of unequal lengths.
absl::StatusOr<CellQuality> FromProto(const v1::CellQuality& proto, size_t partitions);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_CELL_QUALITY_PROTO_H_

// Public parameters of a collection as protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_

#include "absl/status/statusor.h"
#include "common/cells/cell_code.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "privatemail/v1/parameters.pb.h"

namespace privatemail {

v1::Kernel ToProto(KernelConvention kernel);
v1::LabelGraph ToProto(LabelGraphKind graph);
v1::CellCode ToProto(CellCode code);
void ToProto(const EmbeddingSettings& settings, v1::EmbeddingSettings* proto);
void ToProto(const PublicParameters& parameters, v1::PublicParameters* proto);

// Each returns INVALID_ARGUMENT naming the field when a value is missing or out of range or an enum
// is unspecified.
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
absl::StatusOr<EmbeddingSettings> FromProto(const v1::EmbeddingSettings& proto);
// Also INVALID_ARGUMENT for a text that is too long.
absl::StatusOr<PublicParameters> FromProto(const v1::PublicParameters& proto);
// For stored parameters, which may be older than the limits of texts: texts of any length.
absl::StatusOr<PublicParameters> FromStoredProto(const v1::PublicParameters& proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_

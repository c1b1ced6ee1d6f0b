// Conversion of public parameters to and from protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cells/cell_code.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "privatemail/v1/parameters.pb.h"

namespace privatemail {

v1::Kernel ToProto(KernelConvention kernel);
v1::LabelGraph ToProto(LabelGraphKind graph);
v1::CellCode ToProto(CellCode code);
v1::Metric ToProto(Metric metric);
void ToProto(const EmbeddingSettings& settings, v1::EmbeddingSettings* proto);
void ToProto(const PublicParameters& parameters, v1::PublicParameters* proto);

// INVALID_ARGUMENT naming the field: a value is missing or out of range, an enum is unspecified, or
// a text of public parameters is too long.
absl::StatusOr<CellCode> FromProto(v1::CellCode code);
absl::StatusOr<Metric> FromProto(v1::Metric metric);
absl::StatusOr<EmbeddingSettings> FromProto(const v1::EmbeddingSettings& proto);
absl::StatusOr<PublicParameters> FromProto(const v1::PublicParameters& proto);

// OfferedSchemes; none for malformed parameters.
std::vector<std::string> OfferedSchemes(const v1::PublicParameters& proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_PARAMETERS_PROTO_H_

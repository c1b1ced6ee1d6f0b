// Conversion of embedding settings to and from their protobuf message.
#ifndef PRIVATEMAIL_COMMON_WIRE_EMBEDDING_SETTINGS_PROTO_H_
#define PRIVATEMAIL_COMMON_WIRE_EMBEDDING_SETTINGS_PROTO_H_

#include "absl/status/statusor.h"
#include "common/embedding/smlq.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

v1::Kernel ToProto(KernelConvention kernel);
v1::LabelGraph ToProto(LabelGraphKind graph);
void ToProto(const EmbeddingSettings& settings, v1::EmbeddingSettings* proto);

// INVALID_ARGUMENT naming the field: a value is missing or out of range, or an enum is unspecified.
absl::StatusOr<EmbeddingSettings> FromProto(const v1::EmbeddingSettings& proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_EMBEDDING_SETTINGS_PROTO_H_

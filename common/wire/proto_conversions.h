// Conversion of matrices, items' labels, measured quality and public parameters to and from
// protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_PROTO_CONVERSIONS_H_
#define PRIVATEMAIL_COMMON_WIRE_PROTO_CONVERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_code.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/smlq.h"
#include "privatemail/v1/collections.pb.h"
#include "privatemail/v1/parameters.pb.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Maximum values of a matrix from a peer; checked in 64 bits before anything is allocated.
inline constexpr int64_t kMaxMatrixValues = int64_t{1} << 28;

void ToProto(const FloatMatrix& matrix, v1::Matrix* proto);
// Rounds to float.
void ToProto(const Matrix& matrix, v1::Matrix* proto);

// - INVALID_ARGUMENT naming `field`: rows * cols is not the number of values ("release has 3 rows
//   of 2 columns but 5 values"), a dimension is zero, or a value is not finite
// - RESOURCE_EXHAUSTED: more than kMaxMatrixValues
absl::StatusOr<FloatMatrix> FromProto(absl::string_view field, const v1::Matrix& proto);

// FromProto without a copy: a view of the message's values, valid while the message is unchanged.
using FloatView = Eigen::Map<const FloatMatrix>;
absl::StatusOr<FloatView> ViewOf(absl::string_view field, const v1::Matrix& proto);

// label: of the item, or kNoLabel.
void LabelToProto(int32_t label, v1::Item* proto);

// The label, or kNoLabel. INVALID_ARGUMENT: an item without a label has one, or the label is
// kNoLabel's number.
absl::StatusOr<int32_t> LabelFromProto(const v1::Item& proto);

void ToProto(const CellQuality& quality, v1::CellQuality* proto);

// INVALID_ARGUMENT naming the field: as Validate for so many partitions; curves of unequal lengths.
absl::StatusOr<CellQuality> FromProto(const v1::CellQuality& proto, size_t partitions);

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

#endif  // PRIVATEMAIL_COMMON_WIRE_PROTO_CONVERSIONS_H_

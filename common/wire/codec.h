// Conversion of matrices to and from protobuf messages.
#ifndef PRIVATEMAIL_COMMON_WIRE_CODEC_H_
#define PRIVATEMAIL_COMMON_WIRE_CODEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
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

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_CODEC_H_

// Labelled vectors out of files and images.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// Rows scaled to length 1. INVALID_ARGUMENT: as many labels as rows are expected; a row that is
// zero or not finite.
absl::StatusOr<LabelledRows> LabelRows(const FloatMatrix& features, std::vector<int32_t> labels);

// Of files in the formats of vector_file.h, errors included.
absl::StatusOr<LabelledRows> ReadLabelledVectors(const std::string& vectors,
                                                 const std::string& labels);

// SHA-256 over shape, values and labels, in hexadecimal: what results are kept under.
std::string DigestOf(const LabelledRows& data);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_DATA_H_

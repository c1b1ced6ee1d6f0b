#include "client/evaluation/data.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/features/vector_file.h"
#include "common/embedding/public_parameters.h"
#include "common/base/sha256.h"

namespace privatemail::client {

absl::StatusOr<LabelledRows> LabelRows(const FloatMatrix& features, std::vector<int32_t> labels) {
  if (static_cast<Eigen::Index>(labels.size()) != features.rows()) {
    return absl::InvalidArgumentError(absl::StrCat("labels must be one a row: expected ",
                                                   features.rows(), ", got ", labels.size()));
  }
  PM_ASSIGN_OR_RETURN(Matrix unit, UnitRows("vectors", features));
  return LabelledRows{std::move(unit), std::move(labels)};
}

absl::StatusOr<LabelledRows> ReadLabelledVectors(const std::string& vectors,
                                                 const std::string& labels) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix features, ReadVectors(vectors));
  PM_ASSIGN_OR_RETURN(std::vector<int32_t> of_rows, ReadLabels(labels));
  return LabelRows(features, std::move(of_rows));
}

std::string DigestOf(const LabelledRows& data) {
  const auto bytes_of = [](const auto* values, size_t count) {
    return absl::string_view(reinterpret_cast<const char*>(values), count * sizeof(*values));
  };
  Sha256 digest;
  digest.Add(absl::StrCat(data.features.rows(), " x ", data.features.cols(), "\n"));
  digest.Add(bytes_of(data.features.data(), static_cast<size_t>(data.features.size())));
  digest.Add(bytes_of(data.labels.data(), data.labels.size()));
  return ToHex(digest.Digest());
}

}  // namespace privatemail::client

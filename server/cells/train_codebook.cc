#include "server/cells/train_codebook.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/index/k_means.h"

namespace privatemail::server {
namespace {

// Of fewer a centroid would be little more than these themselves, and the error of others larger
// than what is stated.
constexpr int64_t kAnchorsPerCentroid = 39;

// With few anchors a finer cut into fewer centroids loses nearly the same of other vectors, and its
// error of the anchors is nearly theirs.
int64_t CentroidsFor(int64_t anchors) { return anchors >= 256 * kAnchorsPerCentroid ? 256 : 16; }

absl::Status CheckTrainable(const FloatMatrix& anchors, CellCode code, int64_t parts) {
  const std::string name = absl::StrCat("cell_code pq", CodeBytes(code, anchors.cols()));
  constexpr int64_t kFewest = 16 * kAnchorsPerCentroid;
  if (anchors.rows() < kFewest) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " must have at least ", kFewest, " anchors to be trained on, but there are ",
        anchors.rows(), "; float16, scalar8 and none take any number"));
  }
  if (anchors.cols() >= parts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must have at least ", parts, " dimensions with ", anchors.rows(),
                   " anchors, but there are ", anchors.cols(), "; take a shorter code"));
}

double MeanSquaredError(const ProductCodebook& codebook, const FloatMatrix& rows) {
  double sum = 0;
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    std::string code;
    codebook.Append(rows.row(row), &code);
    sum += (codebook.Decode(code).row(0) - rows.row(row)).cast<double>().squaredNorm();
  }
  return sum / static_cast<double>(rows.rows());
}

}  // namespace

absl::StatusOr<ProductCodebook> TrainCodebook(const FloatMatrix& unit_anchors, CellCode code) {
  const int64_t centroids = CentroidsFor(unit_anchors.rows());
  ProductCodebook codebook;
  codebook.parts = PartsOf(code, centroids);
  PM_RETURN_IF_ERROR(CheckTrainable(unit_anchors, code, codebook.parts));
  codebook.centroids.resize(unit_anchors.cols(), centroids);
  for (int64_t part = 0; part < codebook.parts; ++part) {
    const int64_t begin = codebook.Begin(part);
    const int64_t count = codebook.Begin(part + 1) - begin;
    const FloatMatrix of_part = unit_anchors.middleCols(begin, count);
    codebook.centroids.middleRows(begin, count) = KMeans(of_part, centroids, {}).transpose();
  }
  codebook.relative_squared_error = MeanSquaredError(codebook, unit_anchors);
  return codebook;
}

}  // namespace privatemail::server

#include "common/cells/product_codebook.h"

#include "absl/strings/str_cat.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

// 16 centroids a part: two indices share a byte.
constexpr int64_t kFew = 16;
constexpr int64_t kMany = 256;

}  // namespace

int64_t PartsOf(CellCode code, int64_t centroids_per_part) {
  return CodeBytes(code, /*dim=*/0) * (centroids_per_part == kFew ? 2 : 1);
}

int64_t ProductCodebook::code_bytes() const {
  return centroids_per_part() == kFew ? parts / 2 : parts;
}

void ProductCodebook::Append(const Eigen::RowVectorXf& row, std::string* bytes) const {
  Eigen::RowVectorXf squared_distances(centroids_per_part());
  for (int64_t part = 0; part < parts; ++part) {
    squared_distances.setZero();
    for (int64_t c = Begin(part); c < Begin(part + 1); ++c) {
      squared_distances.array() += (centroids.row(c).array() - row[c]).square();
    }
    Eigen::Index nearest = 0;
    squared_distances.minCoeff(&nearest);
    if (centroids_per_part() == kFew && part % 2 == 1) {
      bytes->back() = static_cast<char>(bytes->back() | nearest << 4);
    } else {
      bytes->push_back(static_cast<char>(nearest));
    }
  }
}

FloatMatrix ProductCodebook::Decode(absl::string_view bytes) const {
  const bool few = centroids_per_part() == kFew;
  FloatMatrix rows(static_cast<int64_t>(bytes.size()) / code_bytes(), dim());
  const auto* code = reinterpret_cast<const uint8_t*>(bytes.data());
  for (Eigen::Index row = 0; row < rows.rows(); ++row, code += code_bytes()) {
    for (int64_t part = 0; part < parts; ++part) {
      const int number = few ? code[part / 2] >> (4 * (part % 2)) & 15 : code[part];
      for (int64_t c = Begin(part); c < Begin(part + 1); ++c) rows(row, c) = centroids(c, number);
    }
  }
  return rows;
}

absl::Status Validate(const ProductCodebook& codebook, CellCode code, int64_t dim) {
  const int64_t count = codebook.centroids_per_part();
  if (codebook.dim() != dim || (count != kFew && count != kMany)) {
    return absl::InvalidArgumentError(absl::StrCat("cell_codebook.centroids must have ", dim,
                                                   " rows of 16 or 256 columns, but have ",
                                                   codebook.dim(), " of ", count));
  }
  if (codebook.parts != PartsOf(code, count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cell_codebook.parts must be ", PartsOf(code, count), ", but are ", codebook.parts));
  }
  if (codebook.parts > dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("cell_codebook.centroids must have a row or more for each of ", codebook.parts,
                     " parts, but have ", dim));
  }
  if (!codebook.centroids.allFinite()) {
    return absl::InvalidArgumentError(
        "cell_codebook.centroids must be finite, but one is NaN or infinite");
  }
  return CheckFiniteNonNegative("cell_codebook.relative_squared_error",
                                codebook.relative_squared_error);
}

}  // namespace privatemail

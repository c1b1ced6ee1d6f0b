// Collections whose items are encoded, for benchmarks of item codes.
#ifndef PRIVATEMAIL_TESTS_BENCHMARKS_CODED_ITEMS_H_
#define PRIVATEMAIL_TESTS_BENCHMARKS_CODED_ITEMS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/items/item_code.h"
#include "server/cells/anchor_training.h"
#include "server/cells/cell_index.h"

namespace privatemail {

// The item codes that encode features.
inline constexpr std::pair<const char*, CellCode> kFeatureCodes[] = {
    {"float16", CellCode::kFloat16}, {"scalar8", CellCode::kScalar8}, {"pq64", CellCode::kPq64},
    {"pq32", CellCode::kPq32},       {"pq16", CellCode::kPq16},       {"pq8", CellCode::kPq8}};

using Labelled = Anchors;  // rows, which need not be anchors

inline Labelled Take(const Labelled& all, std::vector<int64_t>::iterator begin,
                     std::vector<int64_t>::iterator end) {
  const std::vector<int64_t> rows(begin, end);
  Labelled some{all.features(rows, Eigen::all), {}};
  for (const int64_t row : rows) some.labels.push_back(all.labels[static_cast<size_t>(row)]);
  return some;
}

inline server::Gallery GalleryOf(Labelled rows) {
  constexpr int64_t kFirstId = 1'000'000'000;  // of as many digits as all others: ids ascend
  server::Gallery gallery;
  for (int64_t row = 0; row < rows.features.rows(); ++row) {
    gallery.ids.push_back(absl::StrCat(kFirstId + row));
  }
  gallery.payloads.resize(rows.labels.size());
  gallery.features = std::move(rows.features);
  gallery.labels = std::move(rows.labels);
  return gallery;
}

// The parameters of a collection with partitions of so many cells. Fails if there are too few
// anchors for the codebook.
inline absl::StatusOr<PublicParameters> ParametersOf(const Anchors& anchors,
                                                     const EmbeddingSettings& settings,
                                                     CellCode code,
                                                     const std::vector<int64_t>& cells) {
  const FloatMatrix unit = UnitRows("anchors", anchors.features).value().cast<float>();
  std::optional<ProductCodebook> codebook;
  if (IsProductCode(code)) {
    PM_ASSIGN_OR_RETURN(codebook, server::TrainCodebook(unit, code));
  }
  PM_ASSIGN_OR_RETURN(std::vector<CellPartition> partitions, server::PartitionAnchors(unit, cells));
  return MakePublicParameters("uuid", settings, anchors, {}, "vectors", std::move(partitions), code,
                              std::move(codebook));
}

inline Matrix DecodedItems(const PublicParameters& parameters, const server::CellIndex& index) {
  std::string codes;
  for (int64_t row = 0; row < index.items(); ++row) absl::StrAppend(&codes, index.CodeOf(row));
  return DecodeItemCodes(parameters, codes).value().cast<double>();
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_BENCHMARKS_CODED_ITEMS_H_

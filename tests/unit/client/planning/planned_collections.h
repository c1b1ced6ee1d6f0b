// Collections with cells whose forecasts are known, or can be held against a gallery.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_PLANNING_PLANNED_COLLECTIONS_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_PLANNING_PLANNED_COLLECTIONS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "common/embedding/public_parameters.h"
#include "server/cells/anchor_training.h"
#include "tests/testing/matchers.h"
#include "tests/testing/retrieval_oracle.h"

namespace privatemail::client {

// Forecasts are compared with a server's lists.
using namespace server;  // NOLINT(google-build-using-namespace)

struct PlannedCollection {
  Anchors anchors;
  PublicParameters parameters;

  PlannedCollection(Anchors of, std::vector<CellPartition> partitions,
                    CellCode code = CellCode::kFloat16,
                    std::optional<ProductCodebook> codebook = std::nullopt)
      : anchors(std::move(of)),
        parameters(MakePublicParameters("uuid", EmbeddingSettings{}, anchors, {}, "vectors",
                                        std::move(partitions), code, std::move(codebook))
                       .value()) {}
};

// 40 anchors of two classes far apart, each a cell: an item's neighbours are all of its own cell.
inline PlannedCollection TwoClouds() {
  std::mt19937 bits(1);
  std::normal_distribution<float> noise(0, .05F);
  Anchors anchors{FloatMatrix::NullaryExpr(40, 4, [&] { return noise(bits); }), {}};
  CellPartition halves{.cells = 2, .cell_of_anchor = {}};
  for (int32_t i = 0; i < 40; ++i) {
    anchors.features(i, i % 2) += 1;
    anchors.labels.push_back(i % 2);
    halves.cell_of_anchor.push_back(i % 2);
  }
  return {std::move(anchors), {halves}};
}

// Classes around random directions, several a cell, and wide enough to overlap; each dimension is
// narrower than the one before, as those of features are.
inline LabelledFeatures Mixture(int rows, unsigned seed) {
  constexpr int kClasses = 40;
  constexpr int kDim = 32;
  std::mt19937 centre_bits(7), bits(seed);
  std::normal_distribution<float> normal;
  const FloatMatrix centres =
      FloatMatrix::NullaryExpr(kClasses, kDim, [&] { return normal(centre_bits); });
  LabelledFeatures made{FloatMatrix::NullaryExpr(rows, kDim, [&] { return normal(bits); }), {}};
  for (int row = 0; row < rows; ++row) {
    const int label = row % kClasses;
    made.features.row(row) += centres.row(label);
    made.labels.push_back(label);
  }
  for (int i = 0; i < kDim; ++i) made.features.col(i) /= std::sqrt(1.F + static_cast<float>(i));
  return made;
}

inline PlannedCollection CollectionOf(const LabelledFeatures& anchors, CellCode code) {
  FloatMatrix unit = anchors.features;
  unit.rowwise().normalize();
  std::optional<ProductCodebook> codebook;
  if (IsProductCode(code)) codebook = TrainCodebook(unit, code).value();
  return {{anchors.features, anchors.labels},
          PartitionAnchors(unit, {14, 47}).value(),
          code,
          std::move(codebook)};
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_PLANNING_PLANNED_COLLECTIONS_H_

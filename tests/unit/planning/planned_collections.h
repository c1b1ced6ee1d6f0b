// Collections with cells whose forecasts are known, or can be held against a gallery.
#ifndef PRIVATEMAIL_TESTS_UNIT_PLANNING_PLANNED_COLLECTIONS_H_
#define PRIVATEMAIL_TESTS_UNIT_PLANNING_PLANNED_COLLECTIONS_H_

#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "common/protocol/public_parameters.h"
#include "tests/testing/matchers.h"

namespace privatemail {

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

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_UNIT_PLANNING_PLANNED_COLLECTIONS_H_

// A cell index of a gallery with its features in memory.
#ifndef PRIVATEMAIL_TESTS_TESTING_BUILD_CELLS_H_
#define PRIVATEMAIL_TESTS_TESTING_BUILD_CELLS_H_

#include <atomic>
#include <memory>
#include <utility>

#include "common/numerics/row_source.h"
#include "server/cells/cell_index.h"

namespace privatemail::testing {

inline std::shared_ptr<const server::CellIndex> BuildCells(
    const PublicParameters& parameters, const Anchors& anchors, server::Gallery gallery,
    uint64_t embedding_version = 0, server::QualitySample* sample = nullptr) {
  const std::atomic<bool> stopped = false;
  const MatrixRows items(server::CellIndex::UnitItems(std::exchange(gallery.features, {})));
  return *server::CellIndex::Create(parameters, anchors, std::move(gallery), items, stopped,
                                    embedding_version, sample);
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_BUILD_CELLS_H_

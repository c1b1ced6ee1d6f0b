#include "client/queries/cell_queries.h"

#include <gtest/gtest.h>

namespace privatemail::client {
namespace {

v1::GetCollectionResponse WithStatus(v1::CellsStatus status, bool ready) {
  v1::GetCollectionResponse collection;
  collection.set_cells_status(status);
  collection.set_cells_ready(ready);
  return collection;
}

TEST(CellsStatus, DecidesIfTheDaemonSendsIt) {
  EXPECT_TRUE(AreCellsReady(WithStatus(v1::CELLS_STATUS_READY, false)));
  EXPECT_FALSE(AreCellsReady(WithStatus(v1::CELLS_STATUS_PREPARING, true)));
  EXPECT_FALSE(AreCellsReady(WithStatus(v1::CELLS_STATUS_FAILED, true)));
  EXPECT_EQ(CellsStatusName(WithStatus(v1::CELLS_STATUS_NOT_BUILT, false)), "not_built");
}

TEST(CellsStatus, OlderDaemonSaysReadyAlone) {
  EXPECT_TRUE(AreCellsReady(WithStatus(v1::CELLS_STATUS_UNSPECIFIED, true)));
  EXPECT_FALSE(AreCellsReady(WithStatus(v1::CELLS_STATUS_UNSPECIFIED, false)));
  EXPECT_EQ(CellsStatusName(WithStatus(v1::CELLS_STATUS_UNSPECIFIED, true)), "");
}

TEST(CellsStatus, LaterDaemonsUnknownStatusIsNotReady) {
  const auto later = static_cast<v1::CellsStatus>(99);
  EXPECT_FALSE(AreCellsReady(WithStatus(later, false)));
  EXPECT_EQ(CellsStatusName(WithStatus(later, false)), "");
}

}  // namespace
}  // namespace privatemail::client

#include "client/queries/cell_queries.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/testing/matchers.h"
#include "tests/testing/published_things.h"

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

// A server's nonsense is its error, not the caller's.
TEST(CellQuality, MoreItemsThanEmbeddedAreDamage) {
  v1::GetCollectionResponse collection =
      PublishedThings(/*embedding_version=*/1, CellCode::kScalar8).collection;
  collection.set_cells_status(v1::CELLS_STATUS_READY);
  collection.set_cells_ready(true);
  collection.mutable_parameters()->set_publish_quality(true);
  collection.set_embedding_version(1);
  collection.set_embedded_items(1000);
  for (const uint64_t items : {uint64_t{1001}, std::numeric_limits<uint64_t>::max()}) {
    collection.set_cells_items(items);
    EXPECT_THAT(QualityOf(collection),
                FailsWith(absl::StatusCode::kDataLoss, "cells_items must be at most 1000"));
  }
  collection.set_cells_items(1000);
  EXPECT_THAT(QualityOf(collection),
              FailsWith(absl::StatusCode::kUnavailable, "is not measured yet"));
}

}  // namespace
}  // namespace privatemail::client

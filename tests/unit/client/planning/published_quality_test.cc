#include "client/planning/published_quality.h"

#include <limits>

#include "tests/testing/published_things.h"

namespace privatemail::client {
namespace {

v1::GetCollectionResponse WithStatus(v1::CellsStatus status) {
  v1::GetCollectionResponse collection;
  collection.set_cells_status(status);
  return collection;
}

TEST(CellsStatus, OnlyReadyCellsAreSearched) {
  EXPECT_THAT(CheckCellsReady(WithStatus(v1::CELLS_STATUS_READY)), IsOk());
  EXPECT_THAT(CheckCellsReady(WithStatus(v1::CELLS_STATUS_PREPARING)),
              FailsWith(kUnavailable, "not ready yet"));
  EXPECT_THAT(CheckCellsReady(WithStatus(v1::CELLS_STATUS_FAILED)),
              FailsWith(kFailedPrecondition, "could not be prepared"));
  EXPECT_THAT(CheckCellsReady(WithStatus(static_cast<v1::CellsStatus>(99))),
              FailsWith(kUnavailable));
  EXPECT_EQ(CellsStatusName(WithStatus(v1::CELLS_STATUS_NOT_BUILT)), "not_built");
}

// A server's nonsense is its error, not the caller's.
TEST(CellQuality, MoreItemsThanEmbeddedAreDamage) {
  v1::GetCollectionResponse collection =
      PublishedThings(/*embedding_version=*/1, CellCode::kScalar8).collection;
  collection.set_cells_status(v1::CELLS_STATUS_READY);
  collection.mutable_parameters()->set_publish_quality(true);
  collection.set_embedding_version(1);
  collection.set_embedded_items(1000);
  for (const uint64_t items : {uint64_t{1001}, std::numeric_limits<uint64_t>::max()}) {
    collection.set_cells_items(items);
    EXPECT_THAT(QualityOf(collection), FailsWith(kDataLoss, "cells_items must be at most 1000"));
  }
  collection.set_cells_items(1000);
  EXPECT_THAT(QualityOf(collection), FailsWith(kUnavailable, "is not measured yet"));
  collection.set_without_quality(true);
  EXPECT_THAT(QualityOf(collection), FailsWith(kFailedPrecondition, "divided among shards"));
}

}  // namespace
}  // namespace privatemail::client

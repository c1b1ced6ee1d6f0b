#include "client/schemes/published_collection.h"

#include <cmath>
#include <functional>

#include "tests/testing/published_things.h"

namespace privatemail::client::published_collection_test {
namespace {

// Before a row is copied: the announced rows may exceed the memory of the client.
TEST(JoinAnchors, OtherNumberOfRowsReturnsDataLoss) {
  PublishedThings published;
  ASSERT_OK_AND_ASSIGN(const Anchors anchors, JoinAnchors(published.parameters, published.chunks));
  EXPECT_EQ(anchors.features.rows(), PublishedThings::kAnchors);
  EXPECT_EQ(DigestOf(anchors), published.parameters.anchor_digest);
  published.chunks.push_back(published.chunks.front());
  EXPECT_THAT(JoinAnchors(published.parameters, published.chunks),
              FailsWith(kDataLoss, "anchors must be 40 rows, but the server sent 55"));
  published.chunks.resize(1);
  EXPECT_THAT(JoinAnchors(published.parameters, published.chunks),
              FailsWith(kDataLoss, "but the server sent 15"));
}

// Random coordinates of embedding 3, in chunks of 15 anchors.
std::vector<v1::GetAnchorsResponse> ChunksWithCoordinates() {
  std::vector<v1::GetAnchorsResponse> chunks = PublishedThings(3).chunks;
  for (v1::GetAnchorsResponse& chunk : chunks) {
    ToProto(FloatMatrix(NormalRows(static_cast<int>(chunk.features().rows()), 2, 5)),
            chunk.mutable_coordinates());
    chunk.set_embedding_version(3);
  }
  return chunks;
}

TEST(JoinCoordinates, ConcatenatesChunks) {
  const PublicParameters parameters = PublishedThings().parameters;
  ASSERT_OK_AND_ASSIGN(const auto joined, JoinCoordinates(parameters, ChunksWithCoordinates()));
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(joined->middleRows(15, 15), NormalRows(15, 2, 5).cast<double>());
  EXPECT_EQ(joined->bottomRows(10), NormalRows(10, 2, 5).cast<double>());
  ASSERT_OK_AND_ASSIGN(const auto none, JoinCoordinates(parameters, PublishedThings().chunks));
  EXPECT_FALSE(none.has_value());
}

const std::pair<std::function<void(std::vector<v1::GetAnchorsResponse>*)>, const char*>
    kAnchorFaults[] = {
        {[](auto* c) { (*c)[1].mutable_coordinates()->set_values(3, NAN); },
         "chunk 1: coordinates"},
        {[](auto* c) { ToProto(FloatMatrix(NormalRows(9, 2, 1)), (*c)[2].mutable_coordinates()); },
         "must be 10 x 2, one row an anchor, but are 9 x 2"},
        {[](auto* c) { ToProto(FloatMatrix(NormalRows(10, 3, 1)), (*c)[2].mutable_coordinates()); },
         "but are 10 x 3"},
        {[](auto* c) { (*c)[1].clear_coordinates(); }, "chunk 1: coordinates"},
        {[](auto* c) { (*c)[1].set_embedding_version(4); },
         "chunk 1: embedding_version must be the same"},
        {[](auto* c) { (*c)[0].clear_embedding_version(); },
         "chunk 0: embedding_version must be given"},
};

TEST(JoinCoordinates, CorruptChunksReturnDataLoss) {
  for (const auto& [corrupt, part] : kAnchorFaults) {
    std::vector<v1::GetAnchorsResponse> chunks = ChunksWithCoordinates();
    corrupt(&chunks);
    EXPECT_THAT(JoinCoordinates(PublishedThings().parameters, chunks), FailsWith(kDataLoss, part));
  }
}

}  // namespace
}  // namespace privatemail::client::published_collection_test

#include "client/schemes/published_collection.h"

#include <gtest/gtest.h>

#include "tests/testing/matchers.h"
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
  EXPECT_THAT(
      JoinAnchors(published.parameters, published.chunks),
      FailsWith(absl::StatusCode::kDataLoss, "anchors must be 40 rows, but the server sent 55"));
  published.chunks.resize(1);
  EXPECT_THAT(JoinAnchors(published.parameters, published.chunks),
              FailsWith(absl::StatusCode::kDataLoss, "but the server sent 15"));
}

}  // namespace
}  // namespace privatemail::client::published_collection_test

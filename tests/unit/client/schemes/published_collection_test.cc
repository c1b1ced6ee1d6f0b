#include "client/schemes/published_collection.h"

#include <gtest/gtest.h>

namespace privatemail::client::published_collection_test {
namespace {

TEST(AnchorByteLimit, BytesBeyondLimitReturnDataLoss) {
  v1::GetAnchorsResponse chunk;
  chunk.mutable_features()->set_rows(1);
  const auto bytes = static_cast<int64_t>(chunk.ByteSizeLong()) + 1;
  AnchorByteLimit limit(3 * bytes);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.Add(chunk).ok());
  const absl::Status refused = limit.Add(chunk);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(refused.message().find("at most"), absl::string_view::npos);
}

TEST(AnchorByteLimit, EmptyChunksCount) {
  AnchorByteLimit limit(100);
  int taken = 0;
  while (limit.Add({}).ok() && taken < 1000) ++taken;
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace privatemail::client::published_collection_test

#include "server/services/sent_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/digests.h"
#include "privatemail/v1/encrypted.pb.h"

namespace privatemail::server {
namespace {

using ::testing::ElementsAre;

TEST(SentBlocks, RowsStandInTheirColumns) {
  const std::vector<EncryptedRow> rows = {
      {"a", 1.5f, 0, "{}"}, {}, {"b", 2, kNoLabel, ""}, {"c", 0, -7, R"({"x":1})"}};
  const EncryptedBlock block(std::make_unique<int16_t[]>(lattice::kDegree), 1, rows);
  v1::RowTableBlock table;
  ASSERT_TRUE(table.ParseFromString(TableOf(block)));
  EXPECT_THAT(table.ids(), ElementsAre("a", "", "b", "c"));
  EXPECT_THAT(table.norms(), ElementsAre(1.5f, 0, 2, 0));
  EXPECT_THAT(table.labels(), ElementsAre(1, 0, 0, -7));  // as proto/privatemail/v1/encrypted.proto
  v1::RowPayloadBlock payloads;
  ASSERT_TRUE(payloads.ParseFromString(PayloadsOf(block)));
  EXPECT_THAT(payloads.payloads(), ElementsAre("{}", "", "", R"({"x":1})"));
  EXPECT_EQ(SentFormOf(block).table_digest, Sha256::Of(TableOf(block)));
  EXPECT_EQ(SentFormOf(block).table_bytes, TableOf(block).size());
  EXPECT_EQ(SentFormOf(block).payload_digest, Sha256::Of(PayloadsOf(block)));
  EXPECT_EQ(SentFormOf(block).payload_bytes, PayloadsOf(block).size());
  EXPECT_EQ(&SentFormOf(block), &SentFormOf(block));
}

TEST(SentBlocks, ColumnsThatNoRowHasAreNotSent) {
  const std::vector<EncryptedRow> rows = {{"a", 1, kNoLabel, ""}};
  const EncryptedBlock block(std::make_unique<int16_t[]>(lattice::kDegree), 1, rows);
  v1::RowTableBlock table;
  ASSERT_TRUE(table.ParseFromString(TableOf(block)));
  EXPECT_EQ(table.labels_size(), 0);
  EXPECT_EQ(PayloadsOf(block), "");
}

}  // namespace
}  // namespace privatemail::server

#include "client/schemes/encrypted/row_table.h"

#include <cmath>
#include <functional>

#include "privatemail/client_limits.h"
#include "privatemail/v1/encrypted.pb.h"
#include "tests/testing/matchers.h"

namespace privatemail::client::row_table_test {
namespace {

v1::RowTableBlock Rows(int rows) {
  v1::RowTableBlock block;
  for (int row = 0; row < rows; ++row) {
    block.add_ids("id" + std::to_string(row));
    block.add_norms(static_cast<float>(row));
  }
  return block;
}

absl::Status ParseChanged(const std::function<void(v1::RowTableBlock*)>& change) {
  v1::RowTableBlock block = Rows(3);
  change(&block);
  return TableBlock::Parse(block.SerializeAsString(), kMaxMemory).status();
}

TEST(TableBlock, RowsAreReadBack) {
  v1::RowTableBlock sent = Rows(3);
  sent.set_ids(1, "");
  for (const int64_t label : {0L, 1L, 2147483648L}) sent.add_labels(label);
  ASSERT_OK_AND_ASSIGN(const auto block, TableBlock::Parse(sent.SerializeAsString(), kMaxMemory));
  EXPECT_EQ(block->rows(), 3U);
  EXPECT_EQ(block->id(0), "id0");
  EXPECT_EQ(block->id(1), "");
  EXPECT_EQ(block->id(2), "id2");
  EXPECT_EQ(block->norm(2), 2);
  EXPECT_EQ(block->label(0), kNoLabel);
  EXPECT_EQ(block->label(1), 0);
  EXPECT_EQ(block->label(2), 2147483647);
  sent.mutable_labels()->Set(0, -2147483647);
  EXPECT_EQ((*TableBlock::Parse(sent.SerializeAsString(), kMaxMemory))->label(0), -2147483647);
  sent.clear_labels();
  EXPECT_EQ((*TableBlock::Parse(sent.SerializeAsString(), kMaxMemory))->label(2), kNoLabel);
}

TEST(TableBlock, MalformedBlocksReturnDataLoss) {
  const std::pair<std::function<void(v1::RowTableBlock*)>, const char*> faults[] = {
      {[](auto* b) { b->Clear(); }, "rows must be between 1 and 2048, but are 0"},
      {[](auto* b) { *b = Rows(2049); }, "but are 2049"},
      {[](auto* b) { b->add_norms(1); }, "norms must have 3 entries"},
      {[](auto* b) { b->add_labels(1); }, "labels must have no entry or 3"},
      {[](auto* b) { b->set_ids(1, "\xff"); }, "row 1: id is not UTF-8"},
      {[](auto* b) { b->set_ids(1, std::string(513, 'a')); }, "row 1: id must"},
      {[](auto* b) { b->set_norms(2, -1.F); }, "row 2: norm must be finite and not negative"},
      {[](auto* b) { b->set_norms(2, NAN); }, "row 2: norm must be finite and not negative"},
      {[](auto* b) { b->set_norms(2, INFINITY); }, "row 2: norm must be finite and not negative"},
      {[](auto* b) { b->mutable_labels()->Resize(3, -2147483648L); }, "row 0: label must be"},
      {[](auto* b) { b->mutable_labels()->Resize(3, 2147483649L); }, "row 0: label must be"}};
  for (const auto& [change, message] : faults) {
    EXPECT_THAT(ParseChanged(change), FailsWith(kDataLoss, message));
  }
  EXPECT_THAT(ParseChanged([](auto* b) { b->set_ids(1, std::string(512, 'a')); }), IsOk());
  EXPECT_THAT(TableBlock::Parse("\xff\xff", kMaxMemory),
              FailsWith(kDataLoss, "content must be a privatemail.v1.RowTableBlock"));
}

TEST(TableBlock, MemoryIsLimitedBeforeParsing) {
  EXPECT_THAT(TableBlock::Parse(Rows(3).SerializeAsString(), 1000),
              FailsWith(kExhausted, "max_memory must be at least"));
}

TEST(PayloadBlock, PayloadsAreCheckedAndReadBack) {
  v1::RowPayloadBlock sent;
  for (const char* payload : {"{\"a\":1}", "", "[]"}) sent.add_payloads(payload);
  ASSERT_OK_AND_ASSIGN(const auto block, PayloadBlock::Parse(sent.SerializeAsString(), kMaxMemory));
  EXPECT_EQ(block->payload(0), "{\"a\":1}");
  EXPECT_EQ(block->payload(1), "");
  EXPECT_EQ(block->payload(2), "[]");
  ASSERT_OK_AND_ASSIGN(const auto none, PayloadBlock::Parse("", kMaxMemory));
  EXPECT_EQ(none->payload(5), "");
  sent.add_payloads("{");
  EXPECT_THAT(PayloadBlock::Parse(sent.SerializeAsString(), kMaxMemory),
              FailsWith(kDataLoss, "row 3: payload"));
}

TEST(RowTable, BlocksBeforeTheLastMustBeFull) {
  const auto block = [](int rows) {
    return *TableBlock::Parse(Rows(rows).SerializeAsString(), kMaxMemory);
  };
  EXPECT_THAT(RowTable::Create({block(2048), block(3)}, {}), IsOk());
  EXPECT_THAT(RowTable::Create({}, {}), FailsWith(kDataLoss, "must have a block"));
  EXPECT_THAT(RowTable::Create({block(3), block(2048)}, {}),
              FailsWith(kDataLoss, "block 0 of the row table must have 2048 rows, but has 3"));
  v1::RowPayloadBlock payloads;
  payloads.add_payloads("1");
  const auto one = *PayloadBlock::Parse(payloads.SerializeAsString(), kMaxMemory);
  EXPECT_THAT(RowTable::Create({block(2)}, {one}), FailsWith(kDataLoss, "block 0 of the payloads"));
  EXPECT_THAT(RowTable::Create({block(1)}, {one}), IsOk());
}

}  // namespace
}  // namespace privatemail::client::row_table_test

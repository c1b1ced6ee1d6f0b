// Memory limits of calls, checked before memory is used.
#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

class MemoryLimitsTest : public ServiceTest {
 protected:
  MemoryLimitsTest() {
    options_.limits.max_request_memory = 65536;
    options_.limits.max_build_memory = 1;
    Serve(options_);
    options_ = {};
  }

  DaemonOptions options_;  // of the test's own daemon
};

TEST_F(MemoryLimitsTest, SearchAndBuildNameLimit) {
  const v1::GetCollectionResponse fruit = MakeFruit(6, false);
  EXPECT_THAT(Retrieve(fruit, 400),
              FailsWith(kExhausted, "more than the limit of 65536 (max_request_memory)"));
  EXPECT_THAT(Build("fruit"), FailsWith(kExhausted, "more than the limit of 1 (max_build_memory)"));
}

// A value of an anchor takes 4 bytes as received and 8 as double. The announced size counts.
TEST_F(MemoryLimitsTest, AnchorsNameLimit) {
  v1::CreateCollectionRequest request = Fruit();
  request.mutable_anchors()->set_rows(100'000);
  request.mutable_anchors()->set_cols(65'536);
  EXPECT_THAT(Create(request), FailsWith(kExhausted,
                                         "memory of the anchors in bytes is 78643200000, more than "
                                         "the limit of 65536 (max_request_memory)"));
}

// 6000 empty ids take two bytes each on the wire and about a hundred in memory: 600 KB.
TEST_F(MemoryLimitsTest, MessageIsRefusedBeforeParsing) {
  EXPECT_THAT(GetItems("fruit", std::vector<std::string>(6000)),
              FailsWith(kExhausted, "memory of the message in bytes is "));
  EXPECT_THAT(Upsert({Message("fruit", std::vector<Item>(6000, Item{}))}),
              FailsWith(kExhausted, "message 0 of the stream: memory of the message in bytes is "));
}

// An open upload holds the quota of its last message.
TEST_F(MemoryLimitsTest, QuotaOfParsedMessagesIsSharedAndReleased) {
  options_.limits.max_parsed_memory = 300'000;
  Serve(options_);
  MakeFruit(3, false);
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  v1::UpsertItemsRequest large = Message("fruit", {MakeItem("large", 3, 1)});
  large.mutable_items(0)->set_payload(absl::StrCat("\"", std::string(200'000, 'x'), "\""));
  const auto writer = collections_->UpsertItems(&context, &totals);
  const auto count = [&] {
    v1::CountItemsRequest request;
    request.set_collection("fruit");
    return Ask(collections_.get(), &Collections::CountItems, request)->items();
  };
  ASSERT_TRUE(writer->Write(large));
  ASSERT_TRUE(WaitUntil([&] { return count() == 4; }));
  EXPECT_THAT(Upsert({large}), FailsWith(kExhausted, "the limit of 300000 (max_parsed_memory)"));
  writer->WritesDone();
  EXPECT_THAT(FromGrpc(writer->Finish()), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return Upsert({large}).ok(); })) << "quota was not released";
}

TEST_F(MemoryLimitsTest, SearchBeyondLimitOfAllIsRefusedBeforeWork) {
  options_.limits.max_message_bytes = 65536;
  options_.limits.max_search_memory = 100'000;
  Serve(options_);
  const v1::GetCollectionResponse fruit = MakeFruit(2000, true);
  EXPECT_THAT(Retrieve(fruit, 10), IsOk());
  EXPECT_THAT(Retrieve(fruit, 1000),
              FailsWith(kExhausted, "the limit of 100000 (max_search_memory)"));
  EXPECT_THAT(Retrieve(fruit, 1999),
              FailsWith(kExhausted, "would exceed the limit of 65536 bytes: "));
  EXPECT_THAT(Retrieve(fruit, 10), IsOk()) << "quota was not released";
}

}  // namespace
}  // namespace privatemail::testing

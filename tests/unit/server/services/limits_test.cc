// Limits on requests, responses and memory.
#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

DaemonOptions SmallLimits() {
  DaemonOptions options;
  options.limits.max_collections = 1;
  options.limits.max_items = 8;
  options.limits.max_anchors = 12;
  options.limits.max_dims = kDim;
  options.limits.max_k = 4;
  options.limits.max_message_bytes = 65536;
  return options;
}

class LimitsTest : public ServiceTest {
 protected:
  LimitsTest() : ServiceTest(SmallLimits()) {}
};

TEST_F(LimitsTest, CreateNamesLimitAndValue) {
  v1::CreateCollectionRequest request = Fruit();
  ToProto(FloatMatrix::Random(13, kDim).eval(), request.mutable_anchors());
  EXPECT_THAT(Create(request),
              FailsWith(kExhausted, "number of anchors is 13, more than the limit of 12"));
  ToProto(FloatMatrix::Random(12, kDim + 1).eval(), request.mutable_anchors());
  EXPECT_THAT(Create(request), FailsWith(kExhausted, "dimensions of the anchors is 5, more than"));
  EXPECT_THAT(Create(Fruit()), IsOk());
  request = Fruit();
  request.set_name("fish");
  EXPECT_THAT(Create(request), FailsWith(kExhausted, "the limit of 1 (max_collections)"));
}

TEST_F(LimitsTest, UploadAndSearchNameLimitAndValue) {
  const v1::GetCollectionResponse fruit = MakeFruit(6, true);
  EXPECT_THAT(Retrieve(fruit, 4), IsOk());
  EXPECT_THAT(Retrieve(fruit, 5),
              FailsWith(kExhausted, "k is 5, more than the limit of 4 (max_k)"));
  EXPECT_THAT(
      Upsert({Message("fruit", MakeItems(1, 9)), Message("fruit", MakeItems(3, 50))}),
      FailsWith(kExhausted, "with this message is 9, more than the limit of 8 (max_items)"));
  EXPECT_EQ(Get("fruit").changes().updated(), 1u) << "by the message before";
}

TEST_F(LimitsTest, MessageLimitShortensPages) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  std::vector<Item> items = MakeItems(3, 1);
  for (Item& item : items) {
    item.payload = absl::StrCat("\"", std::string(25'000, 'x'), "\"");
    ASSERT_THAT(Upsert({Message("fruit", {item})}), IsOk());
  }
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  scroll.set_limit(3);
  for (const int expected : {2, 1}) {
    ASSERT_OK_AND_ASSIGN(const v1::ScrollItemsResponse page,
                         Ask(collections_.get(), &Collections::ScrollItems, scroll));
    EXPECT_EQ(page.items_size(), expected);
    scroll.set_cursor(page.next_cursor());
  }
  EXPECT_THAT(GetItems("fruit", {"item-000", "item-001", "item-002"}),
              FailsWith(kExhausted, "the limit of 65536 bytes: ask for fewer ids at once"));
}

TEST_F(LimitsTest, OversizedRequestNamesLimit) {
  v1::CreateCollectionRequest request = Fruit();
  request.set_extractor(std::string(70'000, 'x'));
  EXPECT_THAT(Create(request), FailsWith(kExhausted, " vs. 65536)"));
}

class ResponseLimitsTest : public ServiceTest {
 protected:
  ResponseLimitsTest() {
    DaemonOptions options;
    options.limits.max_message_bytes = 65536;
    Serve(options);
  }
};

TEST_F(ResponseLimitsTest, OversizedListIsRefusedAndAudited) {
  v1::CreateCollectionRequest request = Fruit();
  request.set_extractor(std::string(1024, 'x'));
  for (int i = 0; i < 55; ++i) {  // each of more than 1,024 + 150 bytes
    request.set_name(absl::StrCat("fruit", i));
    ASSERT_THAT(Create(request), IsOk());
  }
  EXPECT_THAT(List(), FailsWith(kExhausted,
                                "the response would exceed the limit of 65536 bytes: get "
                                "collections one by one"));
  EXPECT_EQ(CallsIn(directory_ / "audit.jsonl").back()["code"], "RESOURCE_EXHAUSTED");
}

TEST_F(ResponseLimitsTest, OversizedSearchOrPageIsRefused) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  std::vector<Item> items = MakeItems(6, 1);  // each in three slots
  for (Item& item : items) item.payload = absl::StrCat("\"", std::string(5000, 'x'), "\"");
  ASSERT_THAT(Upsert({Message("fruit", items)}), IsOk());
  ASSERT_THAT(Build("fruit"), IsOk());
  const v1::GetCollectionResponse fruit = Get("fruit");
  EXPECT_THAT(Retrieve(fruit, 6), IsOk());
  EXPECT_THAT(Retrieve(fruit, 6, /*with_payloads=*/true),
              FailsWith(kExhausted, "the response would exceed the limit of 65536 bytes"));
  // The item fits into an upload, but not into a page beside the cursor.
  items[0].payload = absl::StrCat("\"", std::string(65'300, 'x'), "\"");
  ASSERT_THAT(Upsert({Message("fruit", {items[0]})}), IsOk());
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  scroll.set_limit(1);
  EXPECT_THAT(Ask(collections_.get(), &Collections::ScrollItems, scroll),
              FailsWith(kExhausted,
                        "the response would exceed the limit of 65536 bytes: one item alone does"));
}

// Limits of memory are checked before memory is used.
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
              FailsWith(kExhausted, "more than the limit of 65536 (memory / 16)"));
  EXPECT_THAT(Build("fruit"), FailsWith(kExhausted, "more than the limit of 1 (memory / 4)"));
}

// A value of an anchor takes 4 bytes as received and 8 as double. The announced size counts.
TEST_F(MemoryLimitsTest, AnchorsNameLimit) {
  v1::CreateCollectionRequest request = Fruit();
  request.mutable_anchors()->set_rows(100'000);
  request.mutable_anchors()->set_cols(65'536);
  EXPECT_THAT(Create(request), FailsWith(kExhausted,
                                         "memory of the anchors in bytes is 78643200000, more than "
                                         "the limit of 65536 (memory / 16)"));
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
  EXPECT_THAT(Upsert({large}), FailsWith(kExhausted, "the limit of 300000 (memory / 16)"));
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
  EXPECT_THAT(Retrieve(fruit, 1000), FailsWith(kExhausted, "the limit of 100000 (memory / 8)"));
  EXPECT_THAT(Retrieve(fruit, 1999),
              FailsWith(kExhausted, "would exceed the limit of 65536 bytes: "));
  EXPECT_THAT(Retrieve(fruit, 10), IsOk()) << "quota was not released";
}

}  // namespace
}  // namespace privatemail::testing

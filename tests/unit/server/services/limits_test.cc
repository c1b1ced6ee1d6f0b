// Limits on requests and responses, and the queue of waiting calls.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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
      Upsert({Message("fruit", MakeItems(7, 1)), Message("fruit", MakeItems(2, 50))}),
      FailsWith(kExhausted, "with this message is 9, more than the limit of 8 (max_items)"));
  EXPECT_EQ(Get("fruit").items(), 7u) << "of the message before";
}

TEST_F(LimitsTest, MessageLimitShortensPages) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  std::vector<Item> items = MakeItems(6, 1);
  for (Item& item : items) item.payload = absl::StrCat("\"", std::string(25'000, 'x'), "\"");
  v1::UpsertItemsResponse totals;
  ASSERT_THAT(
      Upsert({Message("fruit", {items[0], items[1]}), Message("fruit", {items[2], items[3]}),
              Message("fruit", {items[4], items[5]})},
             &totals),
      IsOk());
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  scroll.set_limit(6);
  std::vector<std::string> ids;
  do {
    ASSERT_OK_AND_ASSIGN(const v1::ScrollItemsResponse page,
                         Ask(collections_.get(), &Collections::ScrollItems, scroll));
    EXPECT_EQ(page.items_size(), 2);
    for (const v1::Item& item : page.items()) ids.push_back(item.id());
    scroll.set_cursor(page.next_cursor());
  } while (!scroll.cursor().empty() && ids.size() < 10);
  EXPECT_THAT(ids, ::testing::ElementsAre("item-000", "item-001", "item-002", "item-003",
                                          "item-004", "item-005"));
  EXPECT_THAT(GetItems("fruit", ids),
              FailsWith(kExhausted, "the limit of 65536 bytes: ask for fewer ids at once"));
}

TEST_F(LimitsTest, OversizedRequestNamesLimit) {
  v1::CreateCollectionRequest request = Fruit();
  request.set_extractor(std::string(70'000, 'x'));
  EXPECT_THAT(Create(request), FailsWith(kExhausted, " vs. 65536)"));
  ASSERT_THAT(Create(Fruit()), IsOk());
  std::vector<Item> large = MakeItems(1, 1);
  large[0].payload = absl::StrCat("\"", std::string(70'000, 'x'), "\"");
  EXPECT_THAT(Upsert({Message("fruit", large)}), FailsWith(kExhausted, " vs. 65536)"));
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

DaemonOptions OneAtATime() {
  DaemonOptions options;
  options.http = "127.0.0.1:0";
  options.limits.max_concurrent = 1;
  options.limits.max_queued = 2;  // one may be a call whose answer is being delivered
  options.limits.queue_seconds = 1;
  return options;
}

class QueueTest : public ServiceTest {
 protected:
  QueueTest() : ServiceTest(OneAtATime()) {}
};

TEST_F(QueueTest, WaitingCallIsServedOrTimesOut) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  const auto upload = collections_->UpsertItems(&context, &totals);
  ASSERT_TRUE(upload->Write(Message("fruit", MakeItems(3, 1))));
  absl::Status status;
  // Until the upload holds the only ticket.
  for (int i = 0; i < 50 && status.ok(); ++i) status = List();
  EXPECT_THAT(status, FailsWith(kExhausted, "the call waited 1 s while"));
  EXPECT_THAT(List(absl::Milliseconds(50)), FailsWith(kDeadlineExceeded));
  EXPECT_TRUE(WaitUntil([&] { return Metric("privatemail_requests_queued") == 0; }));
  std::thread waiting([&] { EXPECT_THAT(List(), IsOk()); });
  EXPECT_TRUE(WaitUntil([&] { return Metric("privatemail_requests_queued") == 1; }));
  upload->WritesDone();
  EXPECT_THAT(FromGrpc(upload->Finish()), IsOk());
  waiting.join();
}

TEST_F(QueueTest, CancelledUploadReleasesTicket) {
  ASSERT_THAT(Create(Fruit()), IsOk());
  {
    grpc::ClientContext context;
    v1::UpsertItemsResponse totals;
    const auto upload = collections_->UpsertItems(&context, &totals);
    ASSERT_TRUE(upload->Write(Message("fruit", MakeItems(3, 1))));
    context.TryCancel();
    upload->Finish();
  }
  absl::Status status = absl::UnknownError("not tried");
  for (int i = 0; i < 50 && !status.ok(); ++i) status = List();
  EXPECT_THAT(status, IsOk());
}

}  // namespace
}  // namespace privatemail::testing

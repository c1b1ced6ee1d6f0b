// Callers that send nothing or take no answer.
#include <vector>

#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/testing/http2_caller.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

DaemonOptions Impatient(double idle_seconds) {
  DaemonOptions options;
  options.http = "127.0.0.1:0";
  options.limits.max_concurrent = 4;
  options.limits.max_queued = 2;
  options.limits.queue_seconds = 20;
  options.limits.stream_idle_seconds = idle_seconds;
  return options;
}

class IdleCallsTest : public ServiceTest {
 protected:
  IdleCallsTest() : ServiceTest(Impatient(.5)) {}

  struct Upload {
    grpc::ClientContext context;
    v1::UpsertItemsResponse totals;
    std::unique_ptr<grpc::ClientWriter<v1::UpsertItemsRequest>> writer;
  };

  std::unique_ptr<Upload> Begin() const {
    auto upload = std::make_unique<Upload>();
    upload->writer = collections_->UpsertItems(&upload->context, &upload->totals);
    return upload;
  }
};

TEST_F(IdleCallsTest, IdleUploadEndsWithDeadlineExceeded) {
  const v1::GetCollectionResponse fruit = MakeFruit(6, true);
  // The build's ticket may be released after its answer.
  ASSERT_TRUE(WaitUntil([&] { return Metric("privatemail_requests_in_flight") == 0; }));
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < 5; ++i) uploads.push_back(Begin());  // more than max_concurrent
  ASSERT_TRUE(uploads[1]->writer->Write(Message("fruit", MakeItems(1, 70))));
  // Until they hold every ticket, or have timed out already (MakeFruit is the first upload).
  EXPECT_TRUE(WaitUntil([&] {
    return Metric("privatemail_requests_in_flight") == 4 || Audited("UpsertItems").size() > 1;
  }));
  EXPECT_THAT(Retrieve(fruit, 4), IsOk()) << "waits for a ticket";
  for (const auto& upload : uploads) {
    EXPECT_THAT(FromGrpc(upload->writer->Finish()),
                FailsWith(kDeadlineExceeded, "the caller was idle for 0.5 s"));
  }
  // Messages before the timeout are stored.
  ASSERT_OK_AND_ASSIGN(const v1::GetItemsResponse got, GetItems("fruit", {"item-000"}));
  const std::vector<float> features = MakeItem("item-000", 3, 70).features;
  EXPECT_THAT(got.items(0).features(), ::testing::ElementsAreArray(features));
}

// Each part of the answer exceeds the fixed flow-control window, so that the server cannot send it
// to a client that does not read. With BDP probing the window would grow to hold the whole answer.
TEST_F(IdleCallsTest, UnreadStreamEndsWithDeadlineExceeded) {
  constexpr int kAnchors = 20'000;  // 5 MB in parts of 1 MB
  v1::CreateCollectionRequest request = Fruit();
  ToProto(FloatMatrix::Random(kAnchors, 64).eval(), request.mutable_anchors());
  request.clear_anchor_labels();
  for (int i = 0; i < kAnchors; ++i) request.add_anchor_labels(i % 3);
  ASSERT_OK_AND_ASSIGN(const v1::CreateCollectionResponse created, Create(request));

  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = v1::RetrievalService::NewStub(grpc::CreateCustomChannel(
      daemon_->address().ToString(), grpc::InsecureChannelCredentials(), arguments));
  v1::GetAnchorsRequest anchors;
  anchors.set_collection("fruit");
  anchors.set_fingerprint(created.collection().fingerprint());
  constexpr size_t kStreams = 4;  // every ticket
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::GetAnchorsResponse>>> readers;
  for (size_t i = 0; i < kStreams; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub->GetAnchors(contexts.back().get(), anchors));
  }
  const v1::ListCollectionsResponse list = ListAll();
  ASSERT_TRUE(WaitUntil([&] { return Audited("GetAnchors").size() == kStreams; }));
  for (const nlohmann::json& call : Audited("GetAnchors")) {
    EXPECT_EQ(call["code"], "DEADLINE_EXCEEDED");
  }
  for (const auto& reader : readers) {
    v1::GetAnchorsResponse part;
    while (reader->Read(&part)) {
    }
    EXPECT_THAT(FromGrpc(reader->Finish()),
                FailsWith(kDeadlineExceeded, "the caller was idle for 0.5 s"));
  }
}

// The pauses are what is tested: each is shorter than the limit, together they are longer.
TEST_F(IdleCallsTest, SlowUploadContinues) {
  Serve(Impatient(2));
  MakeFruit(1, false);
  const auto upload = Begin();
  for (unsigned i = 0; i < 6; ++i) {
    ASSERT_TRUE(upload->writer->Write(Message("fruit", MakeItems(1, i))));
    absl::SleepFor(absl::Milliseconds(400));
  }
  upload->writer->WritesDone();
  EXPECT_THAT(FromGrpc(upload->writer->Finish()), IsOk());
  EXPECT_EQ(upload->totals.inserted() + upload->totals.updated() + upload->totals.unchanged(), 6u);
}

// Denial of service: callers that take no answer or send nothing.
constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kList[] = "/privatemail.v1.CollectionsService/ListCollections";

DaemonOptions Limited() {
  DaemonOptions options;
  options.http = "127.0.0.1:0";
  options.limits.max_concurrent = 8;
  options.limits.max_queued = 4;
  options.limits.stream_idle_seconds = 1;
  return options;
}

class HostileCallersTest : public ServiceTest {
 protected:
  HostileCallersTest() : ServiceTest(Limited()) {}

  absl::Status Probe() const {
    using grpc::health::v1::Health;
    const auto stub =
        Health::NewStub(Connect(daemon_->address(), grpc::InsecureChannelCredentials()));
    return Ask(stub.get(), &Health::Stub::Check, {}, absl::Seconds(5)).status();
  }
};

TEST_F(HostileCallersTest, UnreadAnswersHoldNoThread) {
  std::vector<Http2Caller> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back(daemon_->address().port);
    ASSERT_TRUE(callers.back().Greet());
    for (int call = 0; call < 50; ++call) ASSERT_TRUE(callers.back().Call(kCheck, "", 0));
  }
  EXPECT_TRUE(WaitUntil(
      [&] { return Metric(R"(privatemail_requests_total{code="OK",rpc="Check"})") >= 400; }));
  EXPECT_THAT(Probe(), IsOk());
  EXPECT_THAT(List(absl::Seconds(5)), IsOk());
  for (Http2Caller& caller : callers) EXPECT_TRUE(caller.IsEnded(10));
}

TEST_F(HostileCallersTest, UnreadAnswersEndWhenOthersWait) {
  DaemonOptions patient = Limited();
  patient.limits.stream_idle_seconds = 3600;
  patient.limits.queue_seconds = 600;
  Serve(patient);
  MakeFruit(1, false);
  Http2Caller caller(daemon_->address().port);
  ASSERT_TRUE(caller.Greet());
  for (int call = 0; call < 8; ++call) ASSERT_TRUE(caller.Call(kList, "", 0));
  EXPECT_TRUE(WaitUntil([&] { return Audited("ListCollections").size() >= 8; }));
  EXPECT_FALSE(caller.IsEnded(.5)) << "while nobody waits";
  ListAll();
  EXPECT_TRUE(caller.IsEnded(10));
}

TEST_F(HostileCallersTest, SilentCallsBlockNobody) {
  std::vector<Http2Caller> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back(daemon_->address().port);
    ASSERT_TRUE(callers.back().Greet());
    ASSERT_TRUE(callers.back().Call(kList, "", 100));  // no byte of the message follows
  }
  EXPECT_THAT(Probe(), IsOk());
  EXPECT_THAT(List(absl::Seconds(5)), IsOk());
}

TEST_F(HostileCallersTest, MessagesWithoutRoomWaitUntilOthersAreGone) {
  DaemonOptions narrow = Limited();
  narrow.limits.max_message_bytes = narrow.limits.max_transport_memory / 2;  // two at a time
  narrow.limits.stream_idle_seconds = 3600;
  Serve(narrow);
  std::vector<std::unique_ptr<Http2Caller>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_unique<Http2Caller>(daemon_->address().port));
    ASSERT_TRUE(callers.back()->Greet());
    ASSERT_TRUE(callers.back()->Call(kList, "", 100));
  }
  EXPECT_THAT(List(absl::Seconds(1)), FailsWith(kDeadlineExceeded, ""));
  // The call that waited and is gone ends, though no place was free.
  EXPECT_TRUE(WaitUntil([&] { return Audited("ListCollections").size() == 1; }));
  EXPECT_THAT(Probe(), IsOk()) << "probes wait for nobody";
  callers.clear();
  EXPECT_THAT(List(absl::Seconds(60)), IsOk());
}

}  // namespace
}  // namespace privatemail::testing

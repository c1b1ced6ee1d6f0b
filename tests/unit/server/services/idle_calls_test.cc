// Callers that send nothing or take no answer.
#include <grpcpp/generic/generic_stub.h>

#include <boost/asio.hpp>
#include <deque>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "grpc/health/v1/health.grpc.pb.h"
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

  // Creates the collection "fruit"; returns a request for its anchors.
  v1::GetAnchorsRequest CreateWithAnchors(int count, int dimensions) {
    v1::CreateCollectionRequest request = Fruit();
    ToProto(FloatMatrix::Random(count, dimensions).eval(), request.mutable_anchors());
    request.clear_anchor_labels();
    for (int i = 0; i < count; ++i) request.add_anchor_labels(i % 3);
    const auto created = Create(request);
    EXPECT_THAT(created, IsOk());
    v1::GetAnchorsRequest anchors;
    anchors.set_collection("fruit");
    anchors.set_fingerprint(created->collection().fingerprint());
    return anchors;
  }

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
TEST_F(IdleCallsTest, UnreadStreamEndsInTimeOrWhenOthersWait) {
  const v1::GetAnchorsRequest anchors = CreateWithAnchors(20'000, 64);  // 5 MB in parts of 1 MB
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  for (const auto& [idle_seconds, ended] :
       {std::pair(.5, "DEADLINE_EXCEEDED"), {3600, "RESOURCE_EXHAUSTED"}}) {
    Serve(Impatient(idle_seconds));
    const size_t before = Audited("GetAnchors").size();
    const auto stub = v1::RetrievalService::NewStub(grpc::CreateCustomChannel(
        daemon_->address().ToString(), grpc::InsecureChannelCredentials(), arguments));
    constexpr size_t kStreams = 4;  // every ticket
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::GetAnchorsResponse>>> readers;
    for (size_t i = 0; i < kStreams; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      readers.push_back(stub->GetAnchors(contexts.back().get(), anchors));
    }
    ASSERT_TRUE(WaitUntil([&] {
      return Metric("privatemail_requests_in_flight") == kStreams ||
             Audited("GetAnchors").size() > before;
    }));
    ListAll();
    // Streams that had waited for less when a place was needed go on.
    const size_t fewest = idle_seconds < 1 ? kStreams : 1;
    ASSERT_TRUE(WaitUntil([&] { return Audited("GetAnchors").size() >= before + fewest; }));
    for (size_t i = 0; i < kStreams; ++i) {
      contexts[i]->TryCancel();
      EXPECT_FALSE(readers[i]->Finish().ok());
    }
    ASSERT_TRUE(WaitUntil([&] { return Audited("GetAnchors").size() == before + kStreams; }));
    const std::vector<nlohmann::json> audited = Audited("GetAnchors");
    for (size_t i = before; i < before + fewest; ++i) EXPECT_EQ(audited[i]["code"], ended);
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

// Over HTTP the daemon sees each piece that is taken, so that the whole message may take longer.
TEST_F(IdleCallsTest, StreamOverHttpThatIsReadSlowlyContinues) {
  DaemonOptions options = Impatient(.5);
  options.http_listen = "127.0.0.1:0";
  Serve(options);
  // 2 MB in parts of 1 MB
  const std::string message = CreateWithAnchors(1000, 512).SerializeAsString();

  const std::string address = daemon_->gateway_address();
  boost::asio::ip::tcp::iostream connection("127.0.0.1", address.substr(address.rfind(':') + 1));
  connection.rdbuf()->set_option(boost::asio::socket_base::receive_buffer_size(64 << 10));
  connection << "POST /privatemail.v1.RetrievalService/GetAnchors HTTP/1.1\r\n"
             << "Content-Type: application/connect+proto\r\nConnection: close\r\n"
             << "Content-Length: " << 5 + message.size() << "\r\n\r\n"
             << std::string("\0\0\0\0", 4) << static_cast<char>(message.size()) << message
             << std::flush;
  std::string answer;
  std::vector<char> part(16 << 10);
  for (const absl::Time start = absl::Now(); connection;) {
    connection.read(part.data(), static_cast<std::streamsize>(part.size()));
    answer.append(part.data(), static_cast<size_t>(connection.gcount()));
    if (absl::Now() < start + absl::Seconds(2)) absl::SleepFor(absl::Milliseconds(40));
  }
  EXPECT_THAT(answer, ::testing::EndsWith(std::string("\2\0\0\0\2{}\r\n0\r\n\r\n", 14)));
}

DaemonOptions Limited() {
  DaemonOptions options;
  options.limits.max_concurrent = 8;
  options.limits.max_queued = 4;
  options.limits.stream_idle_seconds = 1;
  return options;
}

// Calls of which no byte of the message comes. tests/e2e/one_key.py has callers without gRPC.
class SilentCallsTest : public ServiceTest {
 protected:
  SilentCallsTest() : ServiceTest(Limited()) {}
  ~SilentCallsTest() override { End(); }

  void Begin(int calls) {
    for (int i = 0; i < calls; ++i) {
      stubs_.emplace_back(Connect(daemon_->address(), grpc::InsecureChannelCredentials()));
      contexts_.emplace_back();
      calls_.push_back(stubs_.back().PrepareCall(
          &contexts_.back(), "/privatemail.v1.CollectionsService/ListCollections", &queue_));
      calls_.back()->StartCall(nullptr);
      Await();
    }
  }
  void End() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      contexts_[i].TryCancel();
      grpc::Status status;
      calls_[i]->Finish(&status, nullptr);
      Await();
    }
    calls_.clear();
    contexts_.clear();
  }

  absl::Status Probe() const {
    using grpc::health::v1::Health;
    const auto stub =
        Health::NewStub(Connect(daemon_->address(), grpc::InsecureChannelCredentials()));
    return Ask(stub.get(), &Health::Stub::Check, {}, absl::Seconds(5)).status();
  }

 private:
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  grpc::CompletionQueue queue_;
  std::deque<grpc::GenericStub> stubs_;
  std::deque<grpc::ClientContext> contexts_;
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls_;
};

TEST_F(SilentCallsTest, BlockNobody) {
  Begin(20);
  EXPECT_THAT(Probe(), IsOk());
  EXPECT_THAT(List(absl::Seconds(5)), IsOk());
}

TEST_F(SilentCallsTest, MessagesWithoutRoomWaitUntilOthersAreGone) {
  DaemonOptions narrow = Limited();
  narrow.limits.max_message_bytes = narrow.limits.max_transport_memory / 2;  // two at a time
  narrow.limits.stream_idle_seconds = 3600;
  Serve(narrow);
  Begin(3);
  EXPECT_THAT(List(absl::Seconds(1)), FailsWith(kDeadlineExceeded, ""));
  // The call that waited and is gone ends, though no place was free.
  EXPECT_TRUE(WaitUntil([&] { return Audited("ListCollections").size() == 1; }));
  EXPECT_THAT(Probe(), IsOk()) << "probes wait for nobody";
  End();
  EXPECT_THAT(List(absl::Seconds(60)), IsOk());
}

}  // namespace
}  // namespace privatemail::testing

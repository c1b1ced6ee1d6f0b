// Denial of service: callers that take no answer or send nothing.
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/testing/http2_caller.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

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

TEST_F(HostileCallersTest, UnreadAnswersReleaseTickets) {
  MakeFruit(1, false);  // an empty answer would need no window
  Http2Caller caller(daemon_->address().port);
  ASSERT_TRUE(caller.Greet());
  for (int call = 0; call < 8; ++call) ASSERT_TRUE(caller.Call(kList, "", 0));
  EXPECT_TRUE(WaitUntil([&] { return Audited("ListCollections").size() >= 8; }));
  EXPECT_THAT(List(absl::Seconds(5)), IsOk()) << "waits for a ticket";
  EXPECT_TRUE(caller.IsEnded(10));
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

}  // namespace
}  // namespace privatemail::testing

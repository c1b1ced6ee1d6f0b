// Metrics, probes and health service.
#include <regex>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/daemon/http_client.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using ::testing::Not;

class MonitoringTest : public ServiceTest {
 protected:
  MonitoringTest() {
    DaemonOptions options;
    options.http = "127.0.0.1:0";
    Serve(options);
  }

  std::string Metrics() const { return HttpGet(daemon_->http_address(), "/metrics"); }
};

TEST_F(MonitoringTest, MetricsCountCallsByRpcAndStatus) {
  v1::GetCollectionResponse fruit = MakeFruit(6, true);
  EXPECT_THAT(Retrieve(fruit, 2), IsOk());
  EXPECT_THAT(Retrieve(fruit, 2), IsOk());
  EXPECT_THAT(Retrieve(fruit, 10'001), FailsWith(kExhausted, "max_k"));
  fruit.set_name("fish");
  EXPECT_THAT(Retrieve(fruit, 2), FailsWith(kNotFound));
  // After the delivery of all answers, which callers notice earlier than the daemon.
  EXPECT_TRUE(WaitUntil([&] { return Metric("privatemail_requests_in_flight") == 0; }));
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr("HTTP/1.1 200"));
  for (const char* line :
       {R"(privatemail_requests_total{code="OK",rpc="Retrieve"} 2)",
        R"(privatemail_requests_total{code="NOT_FOUND",rpc="Retrieve"} 1)",
        R"(privatemail_request_seconds_count{rpc="Retrieve"} 4)",
        R"(privatemail_collection_items{collection="fruit"} 6)",
        R"(privatemail_collection_embedded_items{collection="fruit"} 6)",
        R"(privatemail_collection_changes_since_embedding{collection="fruit"} 0)",
        "privatemail_read_only 0", "privatemail_collections 1", "privatemail_requests_in_flight 0",
        R"(privatemail_rejected_total{limit="rate"} 0)",
        R"(privatemail_rejected_total{limit="size"} 1)",
        R"(privatemail_rejected_total{limit="concurrency"} 0)",
        R"(privatemail_access_refused_total{code="UNAUTHENTICATED"} 0)"}) {
    EXPECT_THAT(metrics, HasSubstr(absl::StrCat(line, "\n")));
  }
  EXPECT_GT(Metric("process_resident_memory_bytes"), 1e6);
  const std::string address = daemon_->http_address();
  EXPECT_THAT(HttpGet(address, "/readyz"), HasSubstr("HTTP/1.1 200"));
  daemon_->Drain(absl::Seconds(1));
  EXPECT_THAT(HttpGet(address, "/livez"), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(HttpGet(address, "/readyz"), HasSubstr("HTTP/1.1 503"));
}

// Metrics that the dashboard and the alert rules use.
TEST_F(MonitoringTest, DashboardMetricsExist) {
  MakeFruit(6, true);
  const std::string metrics = Metrics();
  for (const char* file : {"grafana/privatemail.json", "prometheus/alerts.yml"}) {
    const std::string text = Contents(absl::StrCat(PRIVATEMAIL_DEPLOY, "/", file));
    const std::regex metric("\\b(privatemail|process)_[a-z_]+");
    int found = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), metric), end; it != end; ++it, ++found) {
      const std::string name =
          std::regex_replace(it->str(), std::regex("_(bucket|count|sum)$"), "");
      EXPECT_THAT(metrics, HasSubstr(absl::StrCat("\n# TYPE ", name, " "))) << file;
    }
    EXPECT_GT(found, 5) << file;
  }
}

TEST(FrontMetrics, HaveNoneOfItemsThatShardsHold) {
  const TemporaryFolder folder;
  const auto catalog =
      *Catalog::Open(*SqliteStore::Open(folder.path()), folder.path(), nullptr, {.is_front = true});
  Admission admission(Limits{});
  const std::string text = server::Metrics(catalog.get(), &admission).Text();
  EXPECT_THAT(text, HasSubstr("privatemail_collection_items"));
  EXPECT_THAT(text, Not(HasSubstr("embedded_items")));
}

TEST_F(MonitoringTest, MetricsNameAtMostHundredCollections) {
  for (int i = 0; i < 103; ++i) {
    v1::CreateCollectionRequest request = Fruit();
    request.set_name(absl::StrCat("c", 1000 + i));
    ASSERT_THAT(Create(request), IsOk());
  }
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics, HasSubstr(R"(privatemail_collection_items{collection="c1099"} 0)"));
  EXPECT_THAT(metrics, HasSubstr(R"(privatemail_collection_items{collection="_other"} 0)"));
  EXPECT_THAT(metrics, Not(HasSubstr("c1100")));
}

HealthCheckResponse::ServingStatus StatusOf(const absl::StatusOr<HealthCheckResponse>& answer) {
  return answer.ok() ? answer->status() : HealthCheckResponse::UNKNOWN;
}

absl::StatusOr<HealthCheckResponse> Check(const std::shared_ptr<grpc::Channel>& channel,
                                          const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  const auto stub = grpc::health::v1::Health::NewStub(channel);
  return Ask(stub.get(), &grpc::health::v1::Health::Stub::Check, request);
}

TEST_F(MonitoringTest, CollectionHealthIsServingAfterBuild) {
  const auto channel = Connect(daemon_->address(), grpc::InsecureChannelCredentials());
  const std::string fruit = "privatemail.collection.fruit";
  EXPECT_EQ(StatusOf(Check(channel, "privatemail.writes")), HealthCheckResponse::SERVING);
  EXPECT_THAT(Check(channel, "other"), FailsWith(kNotFound, "'other'"));
  MakeFruit(6, false);
  EXPECT_EQ(StatusOf(Check(channel, fruit)), HealthCheckResponse::NOT_SERVING);
  ASSERT_THAT(Build("fruit"), IsOk());
  EXPECT_EQ(StatusOf(Check(channel, fruit)), HealthCheckResponse::SERVING);
}

}  // namespace
}  // namespace privatemail::testing

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <cstdlib>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/transport/connection_error.h"
#include "client/transport/proxy.h"
#include "privatemail/admin_client.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/daemon/certificate.h"
#include "tests/testing/fork.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

class RecordingService final : public v1::CollectionsService::Service {
 public:
  grpc::Status ListCollections(grpc::ServerContext* context, const v1::ListCollectionsRequest*,
                               v1::ListCollectionsResponse*) override {
    authorization.clear();
    const auto range = context->client_metadata().equal_range("authorization");
    for (auto it = range.first; it != range.second; ++it) {
      authorization.emplace_back(it->second.data(), it->second.size());
    }
    return grpc::Status::OK;
  }

  grpc::Status DeleteCollection(grpc::ServerContext* /*context*/,
                                const v1::DeleteCollectionRequest* /*request*/,
                                v1::DeleteCollectionResponse* /*response*/) override {
    ++deletions;
    return {ending, "leaving"};
  }

  std::vector<std::string> authorization;
  grpc::StatusCode ending = grpc::StatusCode::OK;
  int deletions = 0;
};

constexpr auto kTooOften = grpc::StatusCode::RESOURCE_EXHAUSTED;

// Fails calls with given statuses before it succeeds, and records requests.
class FailingService final : public v1::RetrievalService::Service {
 public:
  grpc::Status GetCollection(grpc::ServerContext* context, const v1::GetCollectionRequest* request,
                             v1::GetCollectionResponse* response) override {
    response->set_name(name);
    return Answer(context, *request);
  }
  grpc::Status GetAnchors(grpc::ServerContext* context, const v1::GetAnchorsRequest* request,
                          grpc::ServerWriter<v1::GetAnchorsResponse>* writer) override {
    writer->Write({});
    return Answer(context, *request);
  }
  grpc::Status Retrieve(grpc::ServerContext* context, const v1::RetrieveRequest* request,
                        v1::RetrieveResponse*) override {
    return Answer(context, *request);
  }

  std::string name = "fruit";
  std::vector<grpc::StatusCode> endings;
  std::string retry_after;  // empty: not said
  std::vector<std::string> requests;

 private:
  grpc::Status Answer(grpc::ServerContext* context, const google::protobuf::Message& request) {
    requests.push_back(request.SerializeAsString());
    if (requests.size() > endings.size()) return grpc::Status::OK;
    if (!retry_after.empty()) context->AddTrailingMetadata("retry-after-ms", retry_after);
    return {endings[requests.size() - 1], "leaving"};
  }
};

class TransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(identity_, server::LoadOrCreateIdentity(folder_.path()));
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs = {{identity_.key_pem, identity_.certificate_pem}};
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
    builder.RegisterService(&recording_);
    builder.RegisterService(&failing_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    options_.server = absl::StrCat("127.0.0.1:", port);
    options_.trust_fingerprint = identity_.fingerprint;
  }

  std::string KeyFile(const std::string& text, mode_t mode) const {
    const std::string path = folder_.Write(absl::StrCat("key", text.size()), text);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  TemporaryFolder folder_;
  server::TlsIdentity identity_;
  RecordingService recording_;
  FailingService failing_;
  std::unique_ptr<grpc::Server> server_;
  ConnectionOptions options_;
};

TEST(ServerIdentity, IsTheTrustedFingerprintElseTheAddress) {
  ConnectionOptions options;
  options.server = "Host:1";
  EXPECT_EQ(ServerIdentity(options), "host:1");
  options.trust_fingerprint = "AB:cd";
  EXPECT_EQ(ServerIdentity(options), "abcd");
}

TEST_F(TransportTest, SendsKeyOfKeyFile) {
  ASSERT_OK_AND_ASSIGN(const AdminClient nameless, AdminClient::Create(options_));
  ASSERT_THAT(nameless.ListCollections(), IsOk());
  EXPECT_TRUE(recording_.authorization.empty());

  options_.key_file = KeyFile("pm_s3cret-key\n", 0600);
  for (const bool pinned : {true, false}) {
    if (!pinned) {
      options_.trust_fingerprint.clear();
      options_.ca_file = identity_.certificate_path;
    }
    ASSERT_OK_AND_ASSIGN(const AdminClient known, AdminClient::Create(options_));
    ASSERT_THAT(known.ListCollections(), IsOk());
    EXPECT_THAT(recording_.authorization, ::testing::ElementsAre("Bearer pm_s3cret-key"));
  }
}

TEST_F(TransportTest, UnusableKeyOrCaFileIsRefused) {
  for (const mode_t mode : {0644, 0640, 0604, 0620}) {
    options_.key_file = KeyFile("key", mode);
    EXPECT_THAT(AdminClient::Create(options_), FailsWith(kPermissionDenied, "mode 06"));
  }
  const std::string absent = folder_ / "absent";
  // Reading /dev/zero would never end.
  for (const auto& [file, message] : std::vector<std::pair<std::string, std::string>>{
           {KeyFile(" \n", 0600), "is empty"},
           {KeyFile("two\nlines\n", 0600), "one key on one line"},
           {absent, "key_file cannot be used: cannot read file " + absent},
           {"/dev/zero", "cannot read file /dev/zero"}}) {
    options_.key_file = file;
    EXPECT_THAT(AdminClient::Create(options_), FailsWith(kInvalid, message));
  }
  ConnectionOptions insecure = options_;
  options_.key_file.clear();
  options_.trust_fingerprint.clear();
  options_.ca_file = "/dev/zero";
  EXPECT_THAT(AdminClient::Create(options_), FailsWith(kInvalid, "ca_file cannot be used"));
  insecure.key_file = KeyFile("key", 0600);
  insecure.trust_fingerprint.clear();
  insecure.insecure = true;
  EXPECT_THAT(AdminClient::Create(insecure), FailsWith(kInvalid, "key_file needs TLS"));
}

TEST_F(TransportTest, RetriesRetrieveWithSameBytes) {
  using grpc::StatusCode;
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  v1::RetrieveRequest request;
  request.set_collection("fruit");
  // Larger than gRPC's default retry buffer.
  request.mutable_release()->set_rows(1 << 20);
  for (int i = 0; i < 1 << 18; ++i) request.mutable_release()->add_values(static_cast<float>(i));
  failing_.endings = {StatusCode::UNAVAILABLE, StatusCode::CANCELLED, StatusCode::UNAVAILABLE};
  EXPECT_THAT(transport.Retrieve(request), IsOk());
  EXPECT_EQ(failing_.requests, std::vector<std::string>(4, request.SerializeAsString()));

  failing_.requests.clear();
  failing_.endings.assign(10, StatusCode::CANCELLED);
  EXPECT_THAT(transport.Retrieve(request), FailsWith(kUnavailable, "ended the call"));
  EXPECT_EQ(failing_.requests.size(), 4u);

  failing_.requests.clear();
  failing_.endings.assign(10, StatusCode::INTERNAL);
  EXPECT_THAT(transport.Retrieve(request), FailsWith(kInternal, "leaving"));
  EXPECT_EQ(failing_.requests.size(), 1u);
}

// The failed call may have succeeded.
TEST_F(TransportTest, ChangesAreNotRetried) {
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  for (const auto ending : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED}) {
    recording_.ending = ending;
    recording_.deletions = 0;
    EXPECT_THAT(transport.DeleteCollection("fruit"), FailsWith(kUnavailable, "server 127.0.0.1:"));
    EXPECT_EQ(recording_.deletions, 1);
  }
}

TEST_F(TransportTest, AcceptsGrpcTargetsOfThisMachineWithoutProxy) {
  ::setenv("http_proxy", "http://127.0.0.1:1", /*overwrite=*/1);
  const absl::Cleanup unset = [] { ::unsetenv("http_proxy"); };
  const std::string port = options_.server.substr(options_.server.rfind(':'));
  for (const std::string& server :
       {"ipv4:127.0.0.1:1,127.0.0.1" + port, "dns:///localhost" + port, "localhost" + port}) {
    options_.server = server;
    ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
    EXPECT_THAT(transport.ListCollections(), IsOk()) << server;
  }
  for (const std::string server :
       {"127.0.0.1", "http://127.0.0.1:1", "unix:/tmp/socket", "127.0.0.1:0", "*:0"}) {
    options_.server = server;
    EXPECT_THAT(AdminClient::Create(options_),
                FailsWith(kInvalid, "server must be HOST:PORT with a port from 1 to 65535, but is"))
        << server;
  }
}

TEST_F(TransportTest, ErrorNamesTheProxyThatWasUsed) {
  ::setenv("http_proxy", "http://user:secret@127.0.0.1:1", 1);
  ::setenv("no_proxy", "example.org, .test", 1);
  const absl::Cleanup unset = [] {
    ::unsetenv("http_proxy");
    ::unsetenv("no_proxy");
  };
  options_.deadline = absl::Seconds(5);
  for (const std::string server : {"192.0.2.1:5", "dns:///192.0.2.1:5", "ipv4:192.0.2.1:5"}) {
    options_.server = server;
    ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
    EXPECT_THAT(transport.ListCollections(),
                FailsWith(kUnavailable,
                          "cannot be reached through the proxy 127.0.0.1:1 of "
                          "http_proxy: connection refused: is the proxy right?"));
  }
  for (const char* direct : {"nowhere.test:5", "dns:///EXAMPLE.org:5", "[::1]:5", "localhost:5"}) {
    EXPECT_EQ(DescribeProxy(direct), "") << direct;
  }
}

// The texts are gRPC's.
TEST_F(TransportTest, HostThatIsNotFoundIsNamed) {
  const auto explained = [&](const std::string& cause) {
    return ExplainConnectionError(
        options_, absl::UnavailableError("DNS resolution failed for nosuch.invalid:1: C-ares "
                                         "status is not ARES_SUCCESS qtype=A name=nosuch.invalid "
                                         "is_balancer=0: " +
                                         cause));
  };
  EXPECT_THAT(
      explained("Domain name not found"),
      FailsWith(kUnavailable, "cannot be reached: there is no host named nosuch.invalid: "));
  EXPECT_THAT(explained("Could not contact DNS servers"),
              FailsWith(kUnavailable,
                        "cannot be reached: the address of host nosuch.invalid was not found "
                        "(Could not contact DNS servers): check "));
  // A server's own text.
  EXPECT_THAT(
      ExplainConnectionError(options_, absl::UnavailableError("DNS resolution failed for ")),
      FailsWith(kUnavailable, "cannot be reached: DNS resolution failed for "));
}

TEST_F(TransportTest, ForkOfAProcessWithAChannelIsRefusedAtOnce) {
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  ASSERT_THAT(transport.ListCollections(), IsOk());
  EXPECT_TRUE(HoldsInFork(
      [&] { return absl::IsFailedPrecondition(AdminClient::Create(options_).status()); }));
  EXPECT_THAT(transport.ListCollections(), IsOk());
}

// Otherwise one collection's budget would pay for another.
TEST_F(TransportTest, OtherCollectionReturnsDataLoss) {
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  EXPECT_THAT(transport.GetCollection("fruit"), IsOk());
  failing_.name = "fish";
  EXPECT_THAT(transport.GetCollection("fruit"), FailsWith(kDataLoss, "the server was asked for"));
}

TEST_F(TransportTest, RetriesAfterRequestedWait) {
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  v1::RetrieveRequest request;
  request.set_collection("fruit");
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return transport.GetCollection("fruit").status(); },
      [&] {
        const auto chunks = transport.GetAnchors("fruit", "digest");
        EXPECT_EQ(chunks.ok() ? chunks->size() : 0, 1u) << "messages before a refusal are kept";
        return chunks.status();
      },
      [&] { return transport.Retrieve(request).status(); }};
  for (const auto& call : calls) {
    failing_.requests.clear();
    failing_.endings.assign(2, kTooOften);
    failing_.retry_after = "60";
    const absl::Time start = absl::Now();
    EXPECT_THAT(call(), IsOk());
    EXPECT_GE(absl::Now() - start, absl::Milliseconds(120));
    ASSERT_EQ(failing_.requests.size(), 3u);
    EXPECT_THAT(failing_.requests, ::testing::Each(failing_.requests.front()));
  }
}

TEST_F(TransportTest, MissingOrTooLongWaitReturnsResourceExhausted) {
  options_.deadline = absl::Seconds(20);
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  for (const char* retry_after : {"20001", "9223372036854775807", "", "soon", "-1"}) {
    failing_.requests.clear();
    failing_.endings = {kTooOften};
    failing_.retry_after = retry_after;
    EXPECT_THAT(transport.Retrieve({}), FailsWith(kExhausted, "leaving")) << retry_after;
    EXPECT_EQ(failing_.requests.size(), 1u) << retry_after;
  }
}

TEST_F(TransportTest, ZeroWaitIsNotABusyLoop) {
  options_.deadline = absl::Milliseconds(300);
  ASSERT_OK_AND_ASSIGN(const AdminClient transport, AdminClient::Create(options_));
  failing_.endings.assign(1 << 20, kTooOften);
  failing_.retry_after = "0";
  EXPECT_FALSE(transport.Retrieve({}).ok());
  EXPECT_LE(failing_.requests.size(), 31u);
}

}  // namespace
}  // namespace privatemail::client

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

DaemonOptions Options(const std::string& directory) {
  DaemonOptions options;
  options.data_directory = directory;
  options.listen = "127.0.0.1:0";
  return options;
}

absl::Status List(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::ListCollectionsResponse response;
  return FromGrpc(
      v1::CollectionsService::NewStub(channel)->ListCollections(&context, {}, &response));
}

// Calls a method by name, for services whose generated code would clash with gRPC's own.
absl::Status CallByName(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return FromGrpc(status);
}

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

TEST(Daemon, ServesOnlyClientsThatTrustItsCertificate) {
  const TemporaryFolder directory;
  const auto daemon = DaemonServer::Start(Options(directory.path()));
  ASSERT_THAT(daemon, IsOk());
  const ListenAddress& address = (*daemon)->address();
  EXPECT_NE(address.port, 0);
  ASSERT_TRUE((*daemon)->identity());
  const auto trusting = Trusting((*daemon)->identity()->certificate_pem);
  EXPECT_THAT(List(Connect(address, WithKey(trusting, AdminKeyIn(directory.path())))), IsOk());
  EXPECT_THAT(List(Connect(address, trusting)),
              FailsWith(absl::StatusCode::kUnauthenticated, "a key is needed"));
  const auto unavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(List(Connect(address, grpc::SslCredentials({}))), FailsWith(unavailable, ""));
  EXPECT_THAT(List(Connect(address, grpc::InsecureChannelCredentials())),
              FailsWith(unavailable, ""));
}

TEST(Daemon, ClientCaRequiresClientCertificate) {
  const TemporaryFolder directory;
  MakeAuthority(directory.path(), "known");
  MakeAuthority(directory.path(), "stranger");
  DaemonOptions options = Options(directory / "data");
  options.client_ca = directory / "none";
  EXPECT_THAT(DaemonServer::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition, "cannot read --client-ca"));
  options.client_ca = directory / "known.crt";
  const auto daemon = DaemonServer::Start(options);
  ASSERT_THAT(daemon, IsOk());
  const ListenAddress& address = (*daemon)->address();
  const std::string server = (*daemon)->identity()->certificate_pem;
  const std::string key = AdminKeyIn(directory / "data");
  EXPECT_THAT(List(Connect(address, WithKey(Presenting(directory / "known", server), key))),
              IsOk());
  const auto unavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(List(Connect(address, WithKey(Presenting(directory / "stranger", server), key))),
              FailsWith(unavailable, ""));
  EXPECT_THAT(List(Connect(address, WithKey(Trusting(server), key))), FailsWith(unavailable, ""));
}

TEST(Daemon, ServesConfiguredCertificate) {
  const TemporaryFolder directory;
  const auto given = LoadOrCreateIdentity(directory / "given");
  ASSERT_THAT(given, IsOk());
  DaemonOptions options = Options(directory / "data");
  options.tls_certificate = directory / "given/server.crt";
  options.tls_key = directory / "given/server.key";
  const auto daemon = DaemonServer::Start(options);
  ASSERT_THAT(daemon, IsOk());
  EXPECT_THAT(List(Connect((*daemon)->address(), WithKey(Trusting(given->certificate_pem),
                                                         AdminKeyIn(directory / "data")))),
              IsOk());
}

TEST(Daemon, PortInUseReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  const auto first = DaemonServer::Start(Options(directory / "a"));
  ASSERT_THAT(first, IsOk());
  DaemonOptions options = Options(directory / "b");
  options.listen = (*first)->address().ToString();
  EXPECT_THAT(
      DaemonServer::Start(options),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                absl::StrCat("cannot listen on ", options.listen, ": Address already in use")));
}

TEST(Daemon, LockedDirectoryReturnsFailedPrecondition) {
  const TemporaryFolder directory;
  const auto first = DaemonServer::Start(Options(directory.path()));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(
      DaemonServer::Start(Options(directory.path())),
      FailsWith(absl::StatusCode::kFailedPrecondition, "is locked by another daemon (pid "));
}

TEST(Daemon, ReflectionIsOffByDefault) {
  for (const bool reflection : {false, true}) {
    const TemporaryFolder directory;
    DaemonOptions options = Options(directory.path());
    options.insecure = true;
    options.reflection = reflection;
    const auto daemon = DaemonServer::Start(options);
    ASSERT_THAT(daemon, IsOk());
    const auto channel = Connect((*daemon)->address(), grpc::InsecureChannelCredentials());
    EXPECT_THAT(CallByName(channel, kHealth), IsOk());
    EXPECT_EQ(CallByName(channel, kReflection).code() == absl::StatusCode::kUnimplemented,
              !reflection);
  }
}

// Half-open uploads must not exhaust threads.
TEST(Daemon, ExcessConcurrentCallsAreRefusedUntilOthersEnd) {
  const TemporaryFolder directory;
  DaemonOptions options = Options(directory.path());
  options.insecure = true;
  options.limits.max_concurrent = 4;
  options.limits.max_queued = 0;
  const auto daemon = DaemonServer::Start(options);
  ASSERT_THAT(daemon, IsOk());
  const auto channel = Connect((*daemon)->address(), grpc::InsecureChannelCredentials());
  const auto stub = v1::CollectionsService::NewStub(channel);
  struct HalfOpen {
    grpc::ClientContext context;
    v1::UpsertItemsResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::UpsertItemsRequest>> writer;
  };
  std::vector<std::unique_ptr<HalfOpen>> uploads;
  bool refused = false;
  for (int i = 0; i < 40 && !refused; ++i) {
    auto& upload = *uploads.emplace_back(std::make_unique<HalfOpen>());
    upload.writer = stub->UpsertItems(&upload.context, &upload.response);
    refused = absl::IsResourceExhausted(List(channel));
  }
  EXPECT_TRUE(refused) << "after " << uploads.size() << " half-open uploads";
  for (const auto& upload : uploads) upload->context.TryCancel();
  for (const auto& upload : uploads) upload->writer->Finish();
  EXPECT_TRUE(WaitUntil([&] { return List(channel).ok(); }));
}

TEST(Daemon, DrainReleasesDirectory) {
  const TemporaryFolder directory;
  for (int round = 0; round < 2; ++round) {
    auto daemon = DaemonServer::Start(Options(directory.path()));
    ASSERT_THAT(daemon, IsOk());
    EXPECT_EQ((*daemon)->identity()->created, round == 0);
    (*daemon)->Drain(absl::Seconds(1));
  }
}

}  // namespace
}  // namespace privatemail::testing

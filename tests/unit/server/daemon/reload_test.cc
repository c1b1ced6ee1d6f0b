// Reload of settings, certificates, keys and audit log by a running daemon.
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "privatemail/v1/keys.grpc.pb.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;

class ReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeAuthority(folder_.path(), "members");
    MakeClient(folder_.path(), "member", "members", 2);
    MakeAuthority(folder_.path(), "others");
    MakeClient(folder_.path(), "other", "others", 2);
    for (const char* name : {"first", "second"}) {
      ASSERT_THAT(LoadOrCreateIdentity(folder_ / name), IsOk());
    }
    Install("first/server.crt", "first/server.key");
    std::filesystem::copy_file(folder_ / "members.crt", folder_ / "ca.crt");
    options_.data_directory = folder_ / "data";
    options_.listen = "127.0.0.1:0";
    options_.tls_certificate = folder_ / "server.crt";
    options_.tls_key = folder_ / "server.key";
    options_.client_ca = folder_ / "ca.crt";
    ASSERT_OK_AND_ASSIGN(auto daemon, DaemonServer::Start(options_));
    daemon_ = std::move(daemon);
  }

  void Install(const std::string& certificate, const std::string& key) const {
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(folder_ / certificate, folder_ / "server.crt", over);
    std::filesystem::copy_file(folder_ / key, folder_ / "server.key", over);
  }

  // As `who`, trusting the server certificate in `trusted`.
  std::shared_ptr<grpc::Channel> As(const std::string& who, const std::string& trusted) const {
    return Connect(daemon_->address(),
                   WithKey(Presenting(folder_ / who, Contents(folder_ / trusted)),
                           AdminKeyIn(options_.data_directory)));
  }

  static absl::Status List(const std::shared_ptr<grpc::Channel>& channel) {
    const auto stub = v1::CollectionsService::NewStub(channel);
    return Ask(stub.get(), &ServiceTest::Collections::ListCollections, {}, absl::Seconds(5))
        .status();
  }

  bool WaitUntilAccepted(const std::string& who, const std::string& trusted) const {
    return WaitUntil([&] { return List(As(who, trusted)).ok(); });
  }

  const TemporaryFolder folder_;
  DaemonOptions options_;
  std::unique_ptr<DaemonServer> daemon_;
};

TEST_F(ReloadTest, NewCertificateKeepsConnections) {
  const auto before = As("member", "first/server.crt");
  ASSERT_THAT(List(before), IsOk());
  Install("second/server.crt", "second/server.key");
  daemon_->RefreshCertificates();
  EXPECT_TRUE(WaitUntilAccepted("member", "second/server.crt"));
  EXPECT_FALSE(List(As("member", "first/server.crt")).ok());
  EXPECT_THAT(List(before), IsOk());
  EXPECT_EQ(daemon_->identity()->certificate_pem, Contents(folder_ / "second/server.crt"));
  // A new authority replaces the former.
  EXPECT_FALSE(List(As("other", "second/server.crt")).ok());
  folder_.Write("ca.crt", Contents(folder_ / "others.crt"));
  daemon_->RefreshCertificates();
  EXPECT_TRUE(WaitUntilAccepted("other", "second/server.crt"));
  EXPECT_FALSE(List(As("member", "second/server.crt")).ok());
}

TEST_F(ReloadTest, UnusableFilesKeepFormer) {
  MakeClient(folder_.path(), "late", "members", -1);
  MakeEarly(folder_.path(), "early", "members");
  const auto refreshed = [&] {
    ::testing::internal::CaptureStderr();
    daemon_->RefreshCertificates();
    return ::testing::internal::GetCapturedStderr();
  };
  for (const auto& [certificate, key, reason] :
       {std::tuple{"members.key", "first/server.key", "holds no certificate"},
        {"second/server.crt", "first/server.key", "is not the key of"},
        {"early.crt", "early.key", "is not valid before"},
        {"late.crt", "late.key", "expired on"}}) {
    Install(certificate, key);
    EXPECT_THAT(refreshed(), ::testing::AllOf(HasSubstr("ERROR reload: "), HasSubstr(reason),
                                              HasSubstr("the former certificate stays in use")));
  }
  const std::string members = Contents(folder_ / "members.crt");
  const std::string others = Contents(folder_ / "others.crt");
  folder_.Write("ca.crt", others + others.substr(0, 200) + "\n" + members);
  EXPECT_THAT(refreshed(), HasSubstr("holds a damaged certificate in PEM format, number 2"));
  // Nothing shows when gRPC, which polls once a second, has seen no change.
  absl::SleepFor(absl::Seconds(1.5));
  EXPECT_THAT(List(As("member", "first/server.crt")), IsOk());
  EXPECT_FALSE(List(As("other", "first/server.crt")).ok());
  folder_.Write("ca.crt", members);
  Install("second/server.crt", "second/server.key");
  daemon_->RefreshCertificates();
  EXPECT_TRUE(WaitUntilAccepted("member", "second/server.crt"));
}

TEST_F(ReloadTest, AppliesLiveSettingsAndNamesOthers) {
  for (int i = 0; i < 20; ++i) ASSERT_THAT(List(As("member", "first/server.crt")), IsOk());
  DaemonOptions updated = options_;
  updated.limits.max_collections = 0;
  updated.audit_max_bytes = 1000;
  updated.listen = "127.0.0.1:1";
  ::testing::internal::CaptureStderr();
  daemon_->Reload(updated);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("INFO reload: max_collections is now 0, was 1000\n"));
  EXPECT_THAT(log, HasSubstr("WARNING reload: listen stays '127.0.0.1:0' until a restart makes it "
                             "'127.0.0.1:1'\n"));
  EXPECT_EQ(daemon_->options().listen, "127.0.0.1:0");
  const auto stub = v1::CollectionsService::NewStub(As("member", "first/server.crt"));
  EXPECT_THAT(Ask(stub.get(), &ServiceTest::Collections::CreateCollection, ServiceTest::Fruit()),
              FailsWith(kExhausted, "limit of 0 (max_collections)"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "data/audit.jsonl.1"));
  EXPECT_LE(std::filesystem::file_size(folder_ / "data/audit.jsonl"), 1000u);
}

TEST_F(ReloadTest, ReportsUnwrittenRevocation) {
  const auto keys = v1::KeysService::NewStub(As("member", "first/server.crt"));
  v1::CreateKeyRequest create;
  create.set_name("reader");
  create.add_scopes(v1::KEY_SCOPE_SEARCH);
  ASSERT_OK_AND_ASSIGN(const v1::CreateKeyResponse made,
                       Ask(keys.get(), &v1::KeysService::Stub::CreateKey, create));
  std::filesystem::create_directories(folder_ / "data/keys.new/full");
  v1::RevokeKeyRequest revoke;
  revoke.set_id(made.key().id());
  EXPECT_THAT(Ask(keys.get(), &v1::KeysService::Stub::RevokeKey, revoke),
              FailsWith(kFailedPrecondition, "until the next start or reload"));
  EXPECT_EQ(CallsIn(folder_ / "data/audit.jsonl").back()["subject"], made.key().id());
  ::testing::internal::CaptureStderr();
  daemon_->Reload(options_);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("ERROR reload: key " + made.key().id() +
                        " was revoked, but that could not "
                        "be written, so that it is valid again"));
}

// gRPC has no option for the TLS version.
TEST_F(ReloadTest, SpeaksOnlyTls12AndTls13) {
  const auto handshake = [&](const std::string& version) {
    const std::string command = absl::StrCat(
        "openssl s_client -connect ", daemon_->address().ToString(), " -", version,
        " -alpn h2 -cipher DEFAULT@SECLEVEL=0 -cert ", folder_ / "member.crt", " -key ",
        folder_ / "member.key", " </dev/null >", folder_ / "handshake", " 2>&1");
    return std::system(command.c_str()) == 0 &&
           absl::StrContains(Contents(folder_ / "handshake"), "BEGIN CERTIFICATE");
  };
  EXPECT_TRUE(handshake("tls1_3"));
  EXPECT_TRUE(handshake("tls1_2"));
  EXPECT_FALSE(handshake("tls1_1"));
  EXPECT_FALSE(handshake("tls1"));
}

}  // namespace
}  // namespace privatemail::testing

// Access control: every RPC with missing, wrong or insufficient credentials.
#include <grpcpp/generic/generic_stub.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/access_fixture.h"
#include "tests/unit/server/services/daemon_state.h"

namespace privatemail::testing {
namespace {

using google::protobuf::MethodDescriptor;

// Documented requirements of every RPC, independent of the table under test.
struct Requirement {
  Scopes any_of;
  bool all_collections = false;
};
const Requirement& RequirementOf(const std::string& rpc) {
  static const std::map<std::string, Requirement> requirements = {
      {"GetCollection", {kSearchScope | kWriteScope | kAdminScope}},
      {"ListCollections", {kSearchScope | kWriteScope | kAdminScope}},
      {"GetAnchors", {kSearchScope | kAdminScope}},
      {"Retrieve", {kSearchScope | kAdminScope}},
      {"RetrieveCells", {kSearchScope | kAdminScope}},
      {"SearchEncrypted", {kSearchScope | kAdminScope}},
      {"UpsertItems", {kWriteScope | kAdminScope}},
      {"DeleteItems", {kWriteScope | kAdminScope}},
      {"GetItems", {kWriteScope | kAdminScope}},
      {"ScrollItems", {kWriteScope | kAdminScope}},
      {"CountItems", {kWriteScope | kAdminScope}},
      {"BuildEmbedding", {kWriteScope | kAdminScope}},
      {"CreateCollection", {kAdminScope}},
      {"DeleteCollection", {kAdminScope}},
      {"SnapshotCollection", {kAdminScope}},
      {"RestoreCollection", {kAdminScope}},
      {"CreateKey", {kAdminScope, true}},
      {"ListKeys", {kAdminScope, true}},
      {"RevokeKey", {kAdminScope, true}},
  };
  return requirements.at(rpc);  // throws for a new RPC: add it here
}

class AccessControlTest : public AccessTest {
 protected:
  // Sends an id of `bytes` bytes.
  absl::Status GetItems(const std::shared_ptr<grpc::Channel>& channel, size_t bytes) const {
    v1::GetItemsRequest request;
    request.set_collection("fruit");
    request.add_ids(std::string(bytes, 'x'));
    const auto stub = v1::CollectionsService::NewStub(channel);
    return Ask(stub.get(), &ServiceTest::Collections::GetItems, request).status();
  }
  // As audited; empty if the message was not parsed.
  std::string CollectionOfLastCall() const {
    return CallsIn(AuditLogPath(daemon_->options())).back()["collection"];
  }
};

TEST_F(AccessControlTest, WrongCertificateRefusesEveryRpc) {
  const std::string server = daemon_->identity()->certificate_pem;
  const auto unavailable = [](const Rpc&) { return kUnavailable; };
  ExpectAll(grpc::InsecureChannelCredentials(), unavailable);
  for (const char* who : {"outsider", "late"}) {
    SCOPED_TRACE(who);
    ExpectAll(WithKey(Presenting(folder_ / who, server), admin_), unavailable);
  }
  ExpectAll(WithKey(Trusting(server), admin_), unavailable);
  // A client that does not trust the server sends nothing.
  ExpectAll(WithKey(Presenting(folder_ / "member", Contents(folder_ / "stranger.crt")), admin_),
            unavailable);
}

TEST_F(AccessControlTest, MissingWrongOrRevokedKeyRefusesEveryRpc) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  const auto unauthenticated = [](const Rpc&) { return kUnauthenticated; };
  ExpectAll(Member(), unauthenticated);
  std::string wrong = admin_;
  wrong.back() = wrong.back() == 'A' ? 'B' : 'A';
  ExpectAll(WithKey(Member(), wrong), unauthenticated);
  const v1::CreateKeyResponse revoked = MakeKey(kAnyScope, {});
  victim_ = revoked.key().id();
  ASSERT_THAT(Try("ListKeys", "", revoked.text()), IsOk());
  ASSERT_THAT(Try("RevokeKey", "", admin_), IsOk());
  ExpectAll(WithKey(Member(), revoked.text()), unauthenticated);
}

TEST_F(AccessControlTest, OtherScopeReturnsPermissionDenied) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  for (const Scopes scope : {kSearchScope, kWriteScope}) {
    const std::string key = MakeKey(scope, {}).text();
    for (const MethodDescriptor* method : AllMethods()) {
      const std::string rpc = method->name();
      if ((RequirementOf(rpc).any_of & scope) != 0) continue;
      const std::string before = Everything();
      EXPECT_THAT(Call(ChannelWith(key), *method, *RequestFor(*method, "fruit")),
                  FailsWith(kPermissionDenied, absl::StrCat(" is not for ", rpc)));
      EXPECT_EQ(Everything(), before) << rpc << " was executed";
    }
  }
}

TEST_F(AccessControlTest, OtherCollectionReturnsPermissionDenied) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  const v1::CreateKeyResponse key = MakeKey(kAnyScope, {"fish"});
  ExpectAll(WithKey(Member(), key.text()), [](const Rpc& rpc) {
    return rpc.name == std::string("ListCollections") ? kOk : kPermissionDenied;
  });
  // Nor does the status tell whether a collection exists.
  for (const char* rpc : {"GetCollection", "Retrieve", "RetrieveCells", "SearchEncrypted",
                          "UpsertItems", "DeleteItems", "GetItems", "ScrollItems", "CountItems",
                          "DeleteCollection", "SnapshotCollection"}) {
    const absl::Status there = Try(rpc, "fruit", key.text());
    const absl::Status absent = Try(rpc, "never", key.text());
    EXPECT_EQ(there.code(), absent.code());
    EXPECT_EQ(absl::StrReplaceAll(there.message(), {{"fruit", "never"}}), absent.message());
  }
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(key.text()));
  ASSERT_OK_AND_ASSIGN(const v1::ListCollectionsResponse visible,
                       Ask(stub.get(), &ServiceTest::Collections::ListCollections, {}));
  ASSERT_EQ(visible.collections_size(), 1);
  EXPECT_EQ(visible.collections(0).name(), "fish");
}

TEST_F(AccessControlTest, UploadSwitchingCollectionReturnsPermissionDenied) {
  const std::string key = MakeKey(kWriteScope, {"fish"}).text();
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(key));
  const auto writer = stub->UpsertItems(&context, &totals);
  v1::UpsertItemsRequest message;
  message.set_collection("fish");
  EXPECT_TRUE(writer->Write(message));
  message.set_collection("fruit");
  writer->Write(message);
  writer->WritesDone();
  EXPECT_THAT(FromGrpc(writer->Finish()), FailsWith(kPermissionDenied, "'fruit'"));
}

// Guards the other tests: an executed call would be visible.
TEST_F(AccessControlTest, EverythingReflectsEveryChange) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  for (const char* rpc : {"UpsertItems", "DeleteItems", "BuildEmbedding", "CreateCollection",
                          "RestoreCollection", "CreateKey", "RevokeKey", "DeleteCollection"}) {
    const std::string before = Everything();
    const std::string target = rpc == std::string("CreateCollection")    ? "new"
                               : rpc == std::string("RestoreCollection") ? "restored"
                                                                         : "fruit";
    EXPECT_THAT(Try(rpc, target, admin_), IsOk()) << rpc;
    EXPECT_NE(Everything(), before) << rpc;
  }
}

// Guards the other tests: the daemon does not refuse everything.
TEST_F(AccessControlTest, MinimalScopeIsServed) {
  for (const MethodDescriptor* method : AllMethods()) {
    const Requirement& requirement = RequirementOf(method->name());
    for (const Scopes scope : {kSearchScope, kWriteScope, kAdminScope}) {
      if ((requirement.any_of & scope) == 0) continue;
      victim_ = MakeKey(kAnyScope, {}).key().id();
      const std::string collection =
          method->name() == "DeleteCollection" ? "fish" : TargetOf(*method);
      const std::vector<std::string> covered =
          requirement.all_collections ? std::vector<std::string>{} : std::vector{collection};
      const absl::Status status = Call(ChannelWith(MakeKey(scope, covered).text()), *method,
                                       *RequestFor(*method, collection));
      // Served requests may still be incomplete.
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status) ||
                  absl::IsFailedPrecondition(status))
          << method->name() << ": " << status;
    }
  }
}

TEST_F(AccessControlTest, LargeMessageIsParsedOnlyIfAuthorised) {
  const std::string searcher = MakeKey(kSearchScope, {}).text();
  const std::string fish = MakeKey(kWriteScope, {"fish"}).text();
  struct Case {
    std::shared_ptr<grpc::Channel> channel;
    absl::StatusCode code;
    bool large_is_parsed;
  };
  for (const Case& one : {Case{Channel(Member()), absl::StatusCode::kUnauthenticated, false},
                          Case{ChannelWith(searcher), absl::StatusCode::kPermissionDenied, false},
                          Case{ChannelWith(fish), absl::StatusCode::kPermissionDenied, true},
                          Case{ChannelWith(admin_), absl::StatusCode::kOk, true}}) {
    EXPECT_EQ(GetItems(one.channel, 500).code(), one.code);
    EXPECT_EQ(CollectionOfLastCall(), "fruit");
    EXPECT_EQ(GetItems(one.channel, 70'000).code(), one.code);
    EXPECT_EQ(CollectionOfLastCall(), one.large_is_parsed ? "fruit" : "");
  }
}

// A call from loopback that names another caller.
class ProxyTest : public AccessControlTest {
 protected:
  std::string AuditedCaller(const std::shared_ptr<grpc::Channel>& channel,
                            absl::StatusCode expected) const {
    grpc::ClientContext context;
    context.AddMetadata("x-real-ip", "192.0.2.1");
    v1::ListCollectionsResponse response;
    EXPECT_EQ(
        FromGrpc(v1::CollectionsService::NewStub(channel)->ListCollections(&context, {}, &response))
            .code(),
        expected);
    return CallsIn(AuditLogPath(daemon_->options())).back()["peer"];
  }
  // The status of a call whose message does not come.
  static absl::Status BeginCall(const std::shared_ptr<grpc::Channel>& channel,
                                absl::Duration deadline,
                                const std::string& path = "RetrievalService/Retrieve") {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    const auto call = stub.PrepareCall(&context, "/privatemail.v1." + path, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return FromGrpc(status);
  }
};

TEST_F(ProxyTest, CallOfSomebodyElseIsRefusedAfterItsMessage) {
  EXPECT_THAT(BeginCall(Channel(Member()), absl::Seconds(1)), FailsWith(kDeadlineExceeded));
}

TEST_F(ProxyTest, UploadWithoutKeyIsRefusedAtItsHeader) {
  EXPECT_THAT(BeginCall(Channel(Member()), absl::Seconds(60), "CollectionsService/UpsertItems"),
              FailsWith(kUnauthenticated, "a key is needed"));
}

TEST_F(ProxyTest, CallerNamedBySomebodyElseIsIgnored) {
  EXPECT_THAT(AuditedCaller(Channel(Member()), kUnauthenticated),
              ::testing::StartsWith("ipv4:127.0.0.1:"));
  EXPECT_THAT(AuditedCaller(ChannelWith(admin_), absl::StatusCode::kOk),
              ::testing::StartsWith("ipv4:127.0.0.1:"));
}

class TrustedProxyTest : public ProxyTest {
 protected:
  TrustedProxyTest() { options_.trusted_proxies = "127.0.0.1"; }
};

TEST_F(TrustedProxyTest, CallWithoutKeyIsRefusedAtItsHeader) {
  EXPECT_THAT(BeginCall(Channel(Member()), absl::Seconds(60)),
              FailsWith(kUnauthenticated, "a key is needed"));
}

TEST_F(TrustedProxyTest, NamesCallers) {
  EXPECT_EQ(AuditedCaller(Channel(Member()), kUnauthenticated), "192.0.2.1");
  EXPECT_EQ(AuditedCaller(ChannelWith(admin_), absl::StatusCode::kOk), "192.0.2.1");
}

}  // namespace
}  // namespace privatemail::testing

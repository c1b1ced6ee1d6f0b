// Every RPC, called in every way in which it must not be served.
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/rpc/status.h"
#include "privatemail/v1/keys.grpc.pb.h"
#include "server/services/rpc_table.h"
#include "tests/unit/server/all_rpcs.h"
#include "tests/unit/server/certificates.h"
#include "tests/unit/server/service_fixture.h"

namespace privatemail::testing {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;

// A daemon with mutual TLS and the collections birds and fish.
class AccessMatrix : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeAuthority(folder_.path(), "authority");
    MakeAuthority(folder_.path(), "stranger");
    MakeClient(folder_.path(), "member", "authority", 2);
    MakeClient(folder_.path(), "outsider", "stranger", 2);
    MakeClient(folder_.path(), "late", "authority", -1);
    DaemonOptions options;
    options.data_directory = folder_ / "data";
    options.listen = "127.0.0.1:0";
    options.client_ca = folder_ / "authority.crt";
    auto daemon = DaemonServer::Start(options);
    ASSERT_THAT(daemon, IsOk());
    daemon_ = *std::move(daemon);
    admin_ = AdminKeyIn(folder_ / "data");
    ASSERT_THAT(Try("CreateCollection", "birds", admin_), IsOk());
    ASSERT_THAT(Try("CreateCollection", "fish", admin_), IsOk());
    ASSERT_THAT(Try("UpsertItems", "birds", admin_), IsOk());
    ASSERT_THAT(Try("BuildEmbedding", "birds", admin_), IsOk());
  }

  std::shared_ptr<grpc::Channel> Channel(const Credentials& credentials) const {
    return Connect(daemon_->address(), credentials);
  }
  Credentials Member() const {
    return Presenting(folder_ / "member", daemon_->identity()->certificate_pem);
  }
  std::shared_ptr<grpc::Channel> ChannelWith(const std::string& key) const {
    return Channel(WithKey(Member(), key));
  }

  absl::Status Try(const std::string& name, const std::string& collection,
                   const std::string& key) const {
    const std::vector<const MethodDescriptor*> methods = AllMethods();
    const auto found = std::find_if(methods.begin(), methods.end(),
                                    [&](const auto* method) { return method->name() == name; });
    return CallOnce(ChannelWith(key), **found, *RequestFor(**found, collection));
  }

  v1::CreateKeyResponse MakeKey(Scopes scopes, const std::vector<std::string>& collections) const {
    v1::CreateKeyRequest request;
    request.set_name("test");
    if ((scopes & kSearchScope) != 0) request.add_scopes(v1::KEY_SCOPE_SEARCH);
    if ((scopes & kWriteScope) != 0) request.add_scopes(v1::KEY_SCOPE_WRITE);
    if ((scopes & kAdminScope) != 0) request.add_scopes(v1::KEY_SCOPE_ADMIN);
    for (const std::string& collection : collections) request.add_collections(collection);
    v1::CreateKeyResponse response;
    grpc::ClientContext context;
    EXPECT_THAT(
        FromGrpc(
            v1::KeysService::NewStub(ChannelWith(admin_))->CreateKey(&context, request, &response)),
        IsOk());
    return response;
  }

  // A request that would do something if it were served.
  std::unique_ptr<Message> RequestFor(const MethodDescriptor& method,
                                      const std::string& collection) const {
    const Rpc& rpc = FindRpc(method.name());
    std::unique_ptr<Message> request(google::protobuf::MessageFactory::generated_factory()
                                         ->GetPrototype(method.input_type())
                                         ->New());
    if (method.name() == "CreateCollection") request->CopyFrom(Birds(collection));
    if (auto* upsert = dynamic_cast<v1::UpsertItemsRequest*>(request.get())) {
      for (const Item& item : MakeItems(6, 1))
        *upsert->add_items() = ServiceTest::ItemMessage(item);
    }
    if (auto* items = dynamic_cast<v1::DeleteItemsRequest*>(request.get())) {
      items->add_ids(MakeItems(1, 1)[0].id);
    }
    if (auto* items = dynamic_cast<v1::GetItemsRequest*>(request.get())) {
      items->add_ids(MakeItems(1, 1)[0].id);
    }
    if (auto* restore = dynamic_cast<v1::RestoreCollectionRequest*>(request.get())) {
      restore->set_data(ServiceTest::SnapshotBytes(3));
    }
    if (auto* page = dynamic_cast<v1::ScrollItemsRequest*>(request.get())) page->set_limit(1);
    if (auto* create = dynamic_cast<v1::CreateKeyRequest*>(request.get())) {
      create->set_name("made");
      create->add_scopes(v1::KEY_SCOPE_ADMIN);
    }
    if (auto* revoke = dynamic_cast<v1::RevokeKeyRequest*>(request.get())) revoke->set_id(victim_);
    if (rpc.collection[0] != '\0') {
      request->GetReflection()->SetString(
          request.get(), method.input_type()->FindFieldByName(rpc.collection), collection);
    }
    return request;
  }

  // New where it could be created, birds where something is there to be harmed.
  static std::string TargetOf(const MethodDescriptor& method) {
    if (method.name() == "CreateCollection") return "new";
    return method.name() == "RestoreCollection" ? "restored" : "birds";
  }

  // All that a call could change.
  std::string Everything() const {
    const auto channel = ChannelWith(admin_);
    v1::ListCollectionsResponse collections;
    v1::ListKeysResponse keys;
    grpc::ClientContext first;
    grpc::ClientContext second;
    EXPECT_THAT(FromGrpc(v1::CollectionsService::NewStub(channel)->ListCollections(&first, {},
                                                                                   &collections)),
                IsOk());
    EXPECT_THAT(FromGrpc(v1::KeysService::NewStub(channel)->ListKeys(&second, {}, &keys)), IsOk());
    return collections.DebugString() + keys.DebugString();
  }

  // Every RPC over these credentials; `expected` may differ by RPC.
  void ExpectAll(const Credentials& credentials,
                 const std::function<absl::StatusCode(const Rpc&)>& expected) {
    const std::string before = Everything();
    for (const MethodDescriptor* method : AllMethods()) {
      const std::string collection = TargetOf(*method);
      const absl::Status status =
          CallOnce(Channel(credentials), *method, *RequestFor(*method, collection));
      EXPECT_EQ(status.code(), expected(FindRpc(method->name())))
          << method->name() << ": " << status;
      EXPECT_EQ(Everything(), before) << method->name() << " was executed";
    }
  }

  static v1::CreateCollectionRequest Birds(const std::string& name) {
    v1::CreateCollectionRequest request = ServiceTest::Birds();
    request.set_name(name);
    return request;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<DaemonServer> daemon_;
  std::string admin_;
  std::string victim_ = "none";  // key that RevokeKey would revoke
};

TEST_F(AccessMatrix, NobodyIsServedWithoutTheRightCertificate) {
  const std::string server = daemon_->identity()->certificate_pem;
  const auto unavailable = [](const Rpc&) { return kUnavailable; };
  ExpectAll(grpc::InsecureChannelCredentials(), unavailable);
  for (const char* who : {"outsider", "late"}) {
    SCOPED_TRACE(who);
    ExpectAll(WithKey(Presenting(folder_ / who, server), admin_), unavailable);
  }
  ExpectAll(WithKey(Trusting(server), admin_), unavailable);
  // A client that does not trust the server sends it nothing.
  ExpectAll(WithKey(Presenting(folder_ / "member", Contents(folder_ / "stranger.crt")), admin_),
            unavailable);
}

TEST_F(AccessMatrix, NobodyIsServedWithoutAValidKey) {
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

TEST_F(AccessMatrix, AKeyDoesNothingOutsideItsScopes) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  for (const Scopes scope : {kSearchScope, kWriteScope}) {
    const std::string key = MakeKey(scope, {}).text();
    for (const MethodDescriptor* method : AllMethods()) {
      const Rpc& rpc = FindRpc(method->name());
      if ((rpc.any_of & scope) != 0) continue;
      const std::string before = Everything();
      EXPECT_THAT(CallOnce(ChannelWith(key), *method, *RequestFor(*method, "birds")),
                  FailsWith(kPermissionDenied, absl::StrCat(" is not for ", rpc.name)));
      EXPECT_EQ(Everything(), before) << rpc.name << " was executed";
    }
  }
}

TEST_F(AccessMatrix, AKeyDoesNothingOutsideItsCollections) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  const v1::CreateKeyResponse key = MakeKey(kAnyScope, {"fish"});
  ExpectAll(WithKey(Member(), key.text()), [](const Rpc& rpc) {
    return rpc.name == std::string("ListCollections") ? kOk : kPermissionDenied;
  });
  // Nor does it learn what is there.
  for (const char* rpc : {"GetCollection", "Retrieve", "UpsertItems", "DeleteItems", "GetItems",
                          "ScrollItems", "CountItems", "DeleteCollection", "SnapshotCollection"}) {
    const absl::Status there = Try(rpc, "birds", key.text());
    const absl::Status absent = Try(rpc, "never", key.text());
    EXPECT_EQ(there.code(), absent.code());
    EXPECT_EQ(absl::StrReplaceAll(there.message(), {{"birds", "never"}}), absent.message());
  }
  v1::ListCollectionsResponse visible;
  grpc::ClientContext context;
  ASSERT_THAT(FromGrpc(v1::CollectionsService::NewStub(ChannelWith(key.text()))
                           ->ListCollections(&context, {}, &visible)),
              IsOk());
  ASSERT_EQ(visible.collections_size(), 1);
  EXPECT_EQ(visible.collections(0).name(), "fish");
}

TEST_F(AccessMatrix, AnUploadMayNotMoveOnToAnotherCollection) {
  const std::string key = MakeKey(kWriteScope, {"fish"}).text();
  grpc::ClientContext context;
  v1::UpsertItemsResponse totals;
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(key));
  const auto writer = stub->UpsertItems(&context, &totals);
  v1::UpsertItemsRequest message;
  message.set_collection("fish");
  EXPECT_TRUE(writer->Write(message));
  message.set_collection("birds");
  writer->Write(message);
  writer->WritesDone();
  EXPECT_THAT(FromGrpc(writer->Finish()), FailsWith(kPermissionDenied, "'birds'"));
}

// Said here once more, beside the table: these must not become a searcher's by a slip in it.
TEST_F(AccessMatrix, ItemsAreNeitherReadNorCountedNorDeletedByWhoMayOnlySearch) {
  const std::string searcher = MakeKey(kSearchScope, {}).text();
  const std::string writer = MakeKey(kWriteScope, {"birds"}).text();
  for (const char* rpc : {"GetItems", "ScrollItems", "CountItems", "DeleteItems"}) {
    const std::string before = Everything();
    EXPECT_THAT(Try(rpc, "birds", searcher),
                FailsWith(kPermissionDenied, absl::StrCat(" is not for ", rpc)));
    EXPECT_THAT(Try(rpc, "fish", writer),
                FailsWith(kPermissionDenied, "is not for collection 'fish'"));
    EXPECT_EQ(Everything(), before) << rpc << " was executed";
    EXPECT_THAT(Try(rpc, "birds", writer), IsOk());
  }
}

TEST_F(AccessMatrix, ACollectionIsTakenAwayAndBroughtInByWhoMayAdministerItAlone) {
  const std::string writer = MakeKey(kSearchScope | kWriteScope, {}).text();
  const std::string admin = MakeKey(kAdminScope, {"birds", "restored"}).text();
  for (const char* rpc : {"SnapshotCollection", "RestoreCollection"}) {
    const std::string before = Everything();
    EXPECT_THAT(Try(rpc, "restored", writer),
                FailsWith(kPermissionDenied, absl::StrCat(" is not for ", rpc)));
    EXPECT_THAT(Try(rpc, "fish", admin),
                FailsWith(kPermissionDenied, "is not for collection 'fish'"));
    EXPECT_EQ(Everything(), before) << rpc << " was executed";
  }
  EXPECT_THAT(Try("SnapshotCollection", "birds", admin), IsOk());
  EXPECT_THAT(Try("RestoreCollection", "restored", admin), IsOk());
}

// Without this, tests that expect refusals would pass for a daemon that refuses everything.
TEST_F(AccessMatrix, EveryRpcIsServedToAKeyWithJustEnoughRights) {
  for (const MethodDescriptor* method : AllMethods()) {
    const Rpc& rpc = FindRpc(method->name());
    for (const Scopes scope : {kSearchScope, kWriteScope, kAdminScope}) {
      if ((rpc.any_of & scope) == 0) continue;
      victim_ = MakeKey(kAnyScope, {}).key().id();
      const std::string collection =
          rpc.name == std::string("DeleteCollection") ? "fish" : TargetOf(*method);
      const std::vector<std::string> covered =
          rpc.all_collections ? std::vector<std::string>{} : std::vector{collection};
      const absl::Status status = CallOnce(ChannelWith(MakeKey(scope, covered).text()), *method,
                                           *RequestFor(*method, collection));
      // Requests that get so far as to be looked at are not all complete.
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status) ||
                  absl::IsFailedPrecondition(status))
          << rpc.name << ": " << status;
    }
  }
}

TEST_F(AccessMatrix, AKeyIsHeldToItsRate) {
  v1::CreateKeyRequest request;
  request.set_name("slow");
  request.add_scopes(v1::KEY_SCOPE_SEARCH);
  request.set_requests_per_second(.001);
  v1::CreateKeyResponse response;
  grpc::ClientContext context;
  ASSERT_THAT(
      FromGrpc(
          v1::KeysService::NewStub(ChannelWith(admin_))->CreateKey(&context, request, &response)),
      IsOk());
  EXPECT_THAT(Try("ListCollections", "", response.text()), IsOk());
  EXPECT_THAT(Try("ListCollections", "", response.text()),
              FailsWith(absl::StatusCode::kResourceExhausted, "0.001 calls a second"));
}

}  // namespace
}  // namespace privatemail::testing

// Every RPC, called in every way in which it must not be served.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/access_fixture.h"

namespace privatemail::testing {
namespace {

using google::protobuf::MethodDescriptor;

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;

// What the README promises of every RPC, said without the table that the daemon goes by.
struct Promise {
  Scopes any_of;
  bool all_collections = false;
};
const Promise& PromiseOf(const std::string& rpc) {
  static const std::map<std::string, Promise> promises = {
      {"GetCollection", {kSearchScope | kWriteScope | kAdminScope}},
      {"ListCollections", {kSearchScope | kWriteScope | kAdminScope}},
      {"GetAnchors", {kSearchScope | kAdminScope}},
      {"Retrieve", {kSearchScope | kAdminScope}},
      {"RetrieveCells", {kSearchScope | kAdminScope}},
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
  return promises.at(rpc);  // of a new one nothing is promised yet: say it here
}

class AccessMatrix : public AccessTest {};

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
      const std::string rpc = method->name();
      if ((PromiseOf(rpc).any_of & scope) != 0) continue;
      const std::string before = Everything();
      EXPECT_THAT(Call(ChannelWith(key), *method, *RequestFor(*method, "birds")),
                  FailsWith(kPermissionDenied, absl::StrCat(" is not for ", rpc)));
      EXPECT_EQ(Everything(), before) << rpc << " was executed";
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
  for (const char* rpc :
       {"GetCollection", "Retrieve", "RetrieveCells", "UpsertItems", "DeleteItems", "GetItems",
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

// Without this, what is executed all the same would not be seen.
TEST_F(AccessMatrix, WhatAnyRpcChangesShows) {
  victim_ = MakeKey(kAnyScope, {}).key().id();
  for (const char* rpc : {"UpsertItems", "DeleteItems", "BuildEmbedding", "CreateCollection",
                          "RestoreCollection", "CreateKey", "RevokeKey", "DeleteCollection"}) {
    const std::string before = Everything();
    const std::string target = rpc == std::string("CreateCollection")    ? "new"
                               : rpc == std::string("RestoreCollection") ? "restored"
                                                                         : "birds";
    EXPECT_THAT(Try(rpc, target, admin_), IsOk()) << rpc;
    EXPECT_NE(Everything(), before) << rpc;
  }
}

// Without this, tests that expect refusals would pass for a daemon that refuses everything.
TEST_F(AccessMatrix, EveryRpcIsServedToAKeyWithJustEnoughRights) {
  for (const MethodDescriptor* method : AllMethods()) {
    const Promise& promise = PromiseOf(method->name());
    for (const Scopes scope : {kSearchScope, kWriteScope, kAdminScope}) {
      if ((promise.any_of & scope) == 0) continue;
      victim_ = MakeKey(kAnyScope, {}).key().id();
      const std::string collection =
          method->name() == "DeleteCollection" ? "fish" : TargetOf(*method);
      const std::vector<std::string> covered =
          promise.all_collections ? std::vector<std::string>{} : std::vector{collection};
      const absl::Status status = Call(ChannelWith(MakeKey(scope, covered).text()), *method,
                                       *RequestFor(*method, collection));
      // Requests that get so far as to be looked at are not all complete.
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status) ||
                  absl::IsFailedPrecondition(status))
          << method->name() << ": " << status;
    }
  }
}

}  // namespace
}  // namespace privatemail::testing

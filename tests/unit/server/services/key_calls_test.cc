// Rates, concurrency, revocation and audit of the calls of one key.
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "tests/unit/server/services/access_fixture.h"

namespace privatemail::testing {
namespace {

class KeyCallsTest : public AccessTest {
 protected:
  KeyCallsTest() {
    options_.limits.max_concurrent = 8;
    options_.limits.queue_seconds = 1;
  }

  struct Upload {
    std::unique_ptr<v1::CollectionsService::Stub> stub;
    grpc::ClientContext context;
    v1::UpsertItemsResponse totals;
    std::unique_ptr<grpc::ClientWriter<v1::UpsertItemsRequest>> writer;

    // False: the call has ended.
    bool Send(const Item& item) {
      v1::UpsertItemsRequest message;
      message.set_collection("fruit");
      *message.add_items() = ServiceTest::ItemMessage(item);
      return writer->Write(message);
    }
    absl::Status Finish() {
      writer->WritesDone();
      return FromGrpc(writer->Finish());
    }
  };

  std::unique_ptr<Upload> Begin(const std::string& key) const {
    auto upload = std::make_unique<Upload>();
    upload->stub = v1::CollectionsService::NewStub(ChannelWith(key));
    upload->writer = upload->stub->UpsertItems(&upload->context, &upload->totals);
    return upload;
  }

  // Status of an upload that stores an item before `change` and sends another afterwards. Expects
  // that the other is not stored.
  absl::Status UploadAround(const std::string& key, const std::function<void()>& change) const {
    const auto upload = Begin(key);
    EXPECT_TRUE(upload->Send(MakeItem("before", 3, 1)));
    EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(Everything(), "items: 7"); }));
    change();
    const std::string before = Everything();
    upload->Send(MakeItem("after", 3, 2));
    const absl::Status ended = upload->Finish();
    EXPECT_EQ(Everything(), before) << "the second item was stored";
    return ended;
  }

  void Revoke(const v1::CreateKeyResponse& key) {
    victim_ = key.key().id();
    ASSERT_THAT(Try("RevokeKey", "", admin_), IsOk());
  }
};

TEST_F(KeyCallsTest, ExceededRateSendsRetryAfter) {
  const std::string key = MakeKey(kSearchScope, {}, .01).text();
  const auto stub = v1::CollectionsService::NewStub(ChannelWith(key));
  for (const bool first : {true, false}) {
    grpc::ClientContext context;
    v1::ListCollectionsResponse response;
    EXPECT_EQ(stub->ListCollections(&context, {}, &response).ok(), first);
    const auto& metadata = context.GetServerTrailingMetadata();
    ASSERT_EQ(metadata.count("retry-after-ms"), first ? 0u : 1u);
    if (first) continue;
    const grpc::string_ref text = metadata.find("retry-after-ms")->second;
    const int milliseconds = std::stoi(std::string(text.data(), text.size()));
    EXPECT_GT(milliseconds, 60'000);
    EXPECT_LE(milliseconds, 100'000);
  }
  const std::string other = MakeKey(kSearchScope, {}, .001).text();
  EXPECT_THAT(Try("ListKeys", "", other), FailsWith(kPermissionDenied));
  EXPECT_THAT(Try("ListCollections", "", other), FailsWith(kExhausted, "0.001 calls a second"));
}

TEST_F(KeyCallsTest, RefusedCallsAndSubjectsAreAudited) {
  const v1::CreateKeyResponse key = MakeKey(kSearchScope, {}, .001);
  Try("BuildEmbedding", "fruit", key.text()).IgnoreError();
  Try("Retrieve", "fish", key.text()).IgnoreError();
  Try("GetCollection", std::string(1000, 'x'), "none").IgnoreError();
  Revoke(key);
  std::vector<std::string> told;
  for (const nlohmann::json& call : CallsIn(folder_ / "data/audit.jsonl")) {
    const std::string subject = call.value("subject", "");
    if (call["code"] == "OK" && subject.empty()) continue;
    told.push_back(absl::StrCat(call["rpc"].get<std::string>(), " ", subject,
                                call["collection"].get<std::string>(), " ",
                                call["code"].get<std::string>()));
  }
  EXPECT_THAT(told,
              ::testing::ElementsAre(
                  absl::StrCat("CreateKey ", victim_, " OK"),
                  "BuildEmbedding fruit PERMISSION_DENIED", "Retrieve fish RESOURCE_EXHAUSTED",
                  absl::StrCat("GetCollection ", std::string(64, 'x'), " UNAUTHENTICATED"),
                  absl::StrCat("RevokeKey ", victim_, " OK")));
}

// They could make the log rotate until the lines of others are gone.
TEST_F(KeyCallsTest, ManyCallsWithoutKeyAreCountedNotAuditedOneByOne) {
  const auto stub = v1::CollectionsService::NewStub(ChannelWith("none"));
  uint64_t calls = 0;
  const auto left_out = [this] {
    const std::string log = Contents(folder_ / "data/audit.jsonl");
    const size_t at = log.find(R"("calls":)");
    return at == std::string::npos ? 0 : std::stoull(log.substr(at + 8));
  };
  ASSERT_TRUE(WaitUntil([&] {
    for (int i = 0; i < 100; ++i, ++calls) {
      grpc::ClientContext context;
      v1::ListCollectionsResponse response;
      EXPECT_FALSE(stub->ListCollections(&context, {}, &response).ok());
    }
    return left_out() > 0;
  }));
  EXPECT_THAT(Try("GetCollection", "fish", admin_), IsOk());
  const std::vector<nlohmann::json> audited = CallsIn(folder_ / "data/audit.jsonl");
  EXPECT_LE(audited.size() + left_out(), calls + 10);
  EXPECT_EQ(audited.back()["code"], "OK") << "with a key";
}

TEST_F(KeyCallsTest, ConcurrencyPerKeyIsLimited) {
  const v1::CreateKeyResponse greedy = MakeKey(kWriteScope, {});
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < 20; ++i) {
    uploads.push_back(Begin(greedy.text()));
    uploads.back()->Send(MakeItem("item-000", 3, 1));
  }
  EXPECT_THAT(Try("ListCollections", "", MakeKey(kSearchScope, {}).text()), IsOk());
  std::vector<absl::Status> outcomes;
  for (const auto& upload : uploads) outcomes.push_back(upload->Finish());
  EXPECT_THAT(outcomes, ::testing::Contains(FailsWith(
                            kExhausted, absl::StrCat("key ", greedy.key().id(),
                                                     " has 2 running calls and 2 waiting ones"))));
}

TEST_F(KeyCallsTest, RevokedKeyEndsUpload) {
  const v1::CreateKeyResponse key = MakeKey(kWriteScope, {"fruit"});
  EXPECT_THAT(UploadAround(key.text(), [&] { Revoke(key); }),
              FailsWith(kUnauthenticated, "revoked"));
}

TEST_F(KeyCallsTest, RevokedKeyEndsSnapshot) {
  // More than flow control passes to a caller that does not read.
  std::vector<Item> large = MakeItems(400, 1);
  for (Item& item : large) item.payload = "\"" + std::string(100'000, 'x') + "\"";
  Put("fruit", large);
  const v1::CreateKeyResponse reads = MakeKey(kAdminScope, {"fruit"});
  const auto reading = v1::CollectionsService::NewStub(ChannelWith(reads.text()));
  grpc::ClientContext context;
  v1::SnapshotCollectionRequest request;
  request.set_collection("fruit");
  const auto reader = reading->SnapshotCollection(&context, request);
  v1::SnapshotCollectionResponse piece;
  ASSERT_TRUE(reader->Read(&piece));
  Revoke(reads);
  while (reader->Read(&piece)) {
  }
  EXPECT_THAT(FromGrpc(reader->Finish()), FailsWith(kUnauthenticated, "revoked"));
}

// The store uses UUIDs, which a restored collection may share; the key covers only the name.
TEST_F(KeyCallsTest, ReplacedCollectionAbortsUpload) {
  const auto replace = [&] {
    ASSERT_THAT(Try("DeleteCollection", "fruit", admin_), IsOk());
    ASSERT_THAT(Try("CreateCollection", "fruit", admin_), IsOk());
  };
  EXPECT_THAT(UploadAround(MakeKey(kWriteScope, {"fruit"}).text(), replace),
              FailsWith(kAborted, "deleted and created again"));
}

TEST_F(KeyCallsTest, ChangesByKindNeedWriteScope) {
  for (const Scopes scope : {kSearchScope, kWriteScope, kAdminScope}) {
    v1::GetCollectionRequest request;
    request.set_collection("fruit");
    request.set_with_changes(true);
    const auto stub = v1::RetrievalService::NewStub(ChannelWith(MakeKey(scope, {}).text()));
    ASSERT_OK_AND_ASSIGN(const v1::GetCollectionResponse response,
                         Ask(stub.get(), &ServiceTest::Retrieval::GetCollection, request));
    EXPECT_EQ(response.has_changes(), scope != kSearchScope);
    EXPECT_EQ(response.changes_since_embedding(), 0u);
  }
}

}  // namespace
}  // namespace privatemail::testing

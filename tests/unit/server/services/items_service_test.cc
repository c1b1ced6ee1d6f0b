// Single items over the wire.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "common/wire/proto_conversions.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/services/daemon_state.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ItemsServiceTest : public ServiceTest {
 protected:
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::CollectionsService::Stub::*method)(grpc::ClientContext*,
                                                                         const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    return FromGrpc((collections_.get()->*method)(&context, request, response));
  }

  absl::Status Delete(const std::vector<std::string>& ids, v1::DeleteItemsResponse* response) {
    v1::DeleteItemsRequest request;
    request.set_collection("fruit");
    request.mutable_ids()->Assign(ids.begin(), ids.end());
    return Call(&v1::CollectionsService::Stub::DeleteItems, request, response);
  }
  absl::Status Get(const std::vector<std::string>& ids, v1::GetItemsResponse* response) {
    v1::GetItemsRequest request;
    request.set_collection("fruit");
    request.mutable_ids()->Assign(ids.begin(), ids.end());
    return Call(&v1::CollectionsService::Stub::GetItems, request, response);
  }

  static v1::PayloadFilter FileIs(const std::string& file) {
    v1::PayloadFilter filter;
    filter.mutable_equals()->set_path("file");
    filter.mutable_equals()->mutable_value()->set_string_value(file);
    return filter;
  }

  // Ids of all matches of a search for everything, of each slot.
  std::vector<std::vector<std::string>> Found(const v1::GetCollectionResponse& fruit,
                                              const v1::PayloadFilter* filter) {
    v1::RetrieveRequest request;
    request.set_collection("fruit");
    request.set_fingerprint(fruit.fingerprint());
    request.set_k(50);
    request.set_with_payloads(true);
    ToProto(Matrix(Matrix::Random(15, 2)), request.mutable_release());
    if (filter != nullptr) *request.mutable_filter() = *filter;
    grpc::ClientContext context;
    v1::RetrieveResponse response;
    EXPECT_THAT(FromGrpc(retrieval_->Retrieve(&context, request, &response)), IsOk());
    std::vector<std::vector<std::string>> found;
    for (const v1::SlotMatches& slot : response.slots()) {
      std::vector<std::string>& ids = found.emplace_back();
      for (const v1::Match& match : slot.matches()) ids.push_back(match.id());
    }
    return found;
  }
};

TEST_F(ItemsServiceTest, GetReturnsStoredFields) {
  MakeFruit(4, false);
  v1::GetItemsResponse response;
  ASSERT_THAT(Get({"item-002", "none", "item-000"}, &response), IsOk());
  ASSERT_EQ(response.items_size(), 2);
  v1::Item expected = ItemMessage(MakeItems(4, 1)[2]);
  expected.set_payload(R"({"file":"item-002.png"})");
  expected.set_version(3);
  EXPECT_EQ(response.items(0).SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(response.items(1).id(), "item-000");
}

TEST_F(ItemsServiceTest, FilterAppliesToEverySlot) {
  const v1::GetCollectionResponse fruit = MakeFruit(8, true);
  const v1::PayloadFilter filter = FileIs("item-005.png");
  for (const auto& slot : Found(fruit, &filter)) EXPECT_THAT(slot, ElementsAre("item-005"));
}

// LimitsTest.MessageLimitShortensPages scrolls through several pages.
TEST_F(ItemsServiceTest, ScrollAndCountApplyFilter) {
  MakeFruit(7, false);
  v1::ScrollItemsRequest request;
  request.set_collection("fruit");
  request.set_limit(3);
  *request.mutable_filter() = FileIs("item-004.png");
  v1::ScrollItemsResponse page;
  ASSERT_THAT(Call(&v1::CollectionsService::Stub::ScrollItems, request, &page), IsOk());
  ASSERT_EQ(page.items_size(), 1);
  EXPECT_EQ(page.items(0).id(), "item-004");

  v1::CountItemsRequest count;
  count.set_collection("fruit");
  v1::CountItemsResponse counted;
  ASSERT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted), IsOk());
  EXPECT_EQ(counted.items(), 7u);
  *count.mutable_filter() = FileIs("item-004.png");
  ASSERT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted), IsOk());
  EXPECT_EQ(counted.items(), 1u);
}

TEST_F(ItemsServiceTest, InvalidFieldIsNamed) {
  const v1::GetCollectionResponse fruit = MakeFruit(3, true);
  v1::DeleteItemsResponse deleted;
  EXPECT_THAT(Delete({}, &deleted),
              FailsWith(kInvalid, "ids must be 1 to 10000 in one call, but are 0"));
  EXPECT_THAT(Delete(std::vector<std::string>(10001, "a"), &deleted),
              FailsWith(kInvalid, "but are 10001"));
  v1::GetItemsResponse items;
  EXPECT_THAT(Get({}, &items), FailsWith(kInvalid, "ids must be 1 to 1000"));
  EXPECT_THAT(Get(std::vector<std::string>(1001, "a"), &items),
              FailsWith(kInvalid, "but are 1001"));
  v1::ScrollItemsRequest scroll;
  v1::ScrollItemsResponse page;
  scroll.set_collection("fruit");
  for (const uint32_t limit : {0u, 1001u, 4294967295u}) {
    scroll.set_limit(limit);
    EXPECT_THAT(Call(&v1::CollectionsService::Stub::ScrollItems, scroll, &page),
                FailsWith(kInvalid, "limit must be between 1 and 1000"));
  }
  scroll.set_limit(1);
  scroll.mutable_filter();
  EXPECT_THAT(Call(&v1::CollectionsService::Stub::ScrollItems, scroll, &page),
              FailsWith(kInvalid, "filter must be a condition"));
  v1::CountItemsRequest count;
  v1::CountItemsResponse counted;
  count.set_collection("fruit");
  count.mutable_filter()->mutable_range()->set_path("a");
  EXPECT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted),
              FailsWith(kInvalid, "filter.range must have a bound"));
  count.Clear();
  EXPECT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted),
              FailsWith(kInvalid, "collection must be named"));
  count.set_collection("fish");
  EXPECT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted),
              FailsWith(kNotFound, "collection fish does not exist"));
}

TEST_F(ItemsServiceTest, AuditLogHoldsOnlyCounts) {
  Found(MakeFruit(6, true), nullptr);
  v1::GetItemsResponse got;
  ASSERT_THAT(Get({"item-001", "item-002", "none"}, &got), IsOk());
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  scroll.set_limit(4);
  v1::ScrollItemsResponse page;
  ASSERT_THAT(Call(&v1::CollectionsService::Stub::ScrollItems, scroll, &page), IsOk());
  v1::CountItemsRequest count;
  count.set_collection("fruit");
  *count.mutable_filter() = FileIs("item-004.png");
  v1::CountItemsResponse counted;
  ASSERT_THAT(Call(&v1::CollectionsService::Stub::CountItems, count, &counted), IsOk());
  v1::DeleteItemsResponse deleted;
  ASSERT_THAT(Delete({"item-001", "item-002", "item-003", "none"}, &deleted), IsOk());
  count.set_collection("x\"\n");
  ASSERT_FALSE(Call(&v1::CollectionsService::Stub::CountItems, count, &counted).ok());
  daemon_->Drain(absl::Seconds(1));
  const std::string text = Contents(directory_ / "audit.jsonl");
  std::vector<std::string> entries;
  for (const nlohmann::json& entry : CallsIn(directory_ / "audit.jsonl")) {
    entries.push_back(absl::StrCat(entry["rpc"].get<std::string>(), " ", entry["rows"].get<int>(),
                                   " ", entry["code"].get<std::string>()));
    EXPECT_EQ(entry["collection"], entry["code"] == "OK" ? "fruit" : "x\"\n");
    EXPECT_GT(entry["request_bytes"], 0);
    EXPECT_THAT(entry["peer"].get<std::string>(), HasSubstr("ipv4:127.0.0.1:"));
    EXPECT_EQ(entry.size(), 12u) << entry;
  }
  EXPECT_THAT(entries,
              ElementsAre("CreateCollection 0 OK", "UpsertItems 6 OK", "BuildEmbedding 6 OK",
                          "Retrieve 18 OK", "GetItems 2 OK", "ScrollItems 4 OK", "CountItems 1 OK",
                          "DeleteItems 3 OK", "CountItems 0 NOT_FOUND"));
  for (const char* secret : {"item-", "none", "file", ".png", "filter", "features", "payload"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

}  // namespace
}  // namespace privatemail::testing

// Single items over the wire.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
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
  absl::StatusOr<v1::ScrollItemsResponse> Scroll(const v1::ScrollItemsRequest& request) const {
    return Ask(collections_.get(), &Collections::ScrollItems, request);
  }
  absl::StatusOr<v1::CountItemsResponse> Count(const v1::CountItemsRequest& request) const {
    return Ask(collections_.get(), &Collections::CountItems, request);
  }

  static std::string FileIs(const std::string& file) {
    return absl::StrCat("{\"path\":\"file\",\"equals\":\"", file, "\"}");
  }
};

TEST_F(ItemsServiceTest, InvalidFieldIsNamed) {
  MakeFruit(3, false);
  EXPECT_THAT(DeleteItems("fruit", {}),
              FailsWith(kInvalid, "ids must be 1 to 10000 in one call, but are 0"));
  EXPECT_THAT(DeleteItems("fruit", std::vector<std::string>(10001, "a")),
              FailsWith(kInvalid, "but are 10001"));
  EXPECT_THAT(GetItems("fruit", std::vector<std::string>(1001, "a")),
              FailsWith(kInvalid, "ids must be 1 to 1000"));
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  for (const uint32_t limit : {0u, 1001u}) {
    scroll.set_limit(limit);
    EXPECT_THAT(Scroll(scroll), FailsWith(kInvalid, "limit must be between 1 and 1000"));
  }
  scroll.set_limit(1);
  scroll.set_filter("{}");
  EXPECT_THAT(Scroll(scroll), FailsWith(kInvalid, "filter must be {"));
  v1::CountItemsRequest count;
  count.set_collection("fruit");
  count.set_filter("{}");
  EXPECT_THAT(Count(count), FailsWith(kInvalid, "filter must be {"));
  count.Clear();
  EXPECT_THAT(Count(count), FailsWith(kInvalid, "collection must be given"));
}

TEST_F(ItemsServiceTest, AuditLogHoldsOnlyCounts) {
  ASSERT_THAT(Retrieve(MakeFruit(6, true), 50, /*with_payloads=*/true), IsOk());
  ASSERT_THAT(GetItems("fruit", {"item-001", "item-002", "none"}), IsOk());
  v1::ScrollItemsRequest scroll;
  scroll.set_collection("fruit");
  scroll.set_limit(4);
  ASSERT_THAT(Scroll(scroll), IsOk());
  v1::CountItemsRequest count;
  count.set_collection("fruit");
  count.set_filter(FileIs("item-004.png"));
  ASSERT_THAT(Count(count), IsOk());
  ASSERT_OK_AND_ASSIGN(const v1::DeleteItemsResponse deleted,
                       DeleteItems("fruit", {"item-001", "item-002", "item-003", "none"}));
  EXPECT_THAT(deleted.first_missing(), ::testing::ElementsAre("none"));
  count.set_collection("x\"\n");
  ASSERT_FALSE(Count(count).ok());
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

// Messages that are not made sense of before their caller is known to have the right to send them.
#include "common/rpc/status.h"
#include "tests/unit/server/services/access_fixture.h"
#include "tests/unit/server/services/audit_lines.h"

namespace privatemail::testing {
namespace {

class UnreadMessages : public AccessTest {
 protected:
  // Ids of so many bytes in all.
  absl::Status GetItems(const std::shared_ptr<grpc::Channel>& channel, size_t bytes) const {
    v1::GetItemsRequest request;
    request.set_collection("birds");
    request.add_ids(std::string(bytes, 'x'));
    v1::GetItemsResponse items;
    grpc::ClientContext context;
    return FromGrpc(v1::CollectionsService::NewStub(channel)->GetItems(&context, request, &items));
  }
  // What the audit log says that the last call was about: nothing of a message nobody has read.
  std::string CollectionOfLastCall() const {
    return CallsIn(AuditLogPath(daemon_->options())).back()["collection"];
  }
};

TEST_F(UnreadMessages, AreLargeOnesOfWhoMayNotCall) {
  const std::string searcher = MakeKey(kSearchScope, {}).text();
  const auto nobody = Channel(Member());
  for (const auto& [channel, code] :
       {std::pair(nobody, absl::StatusCode::kUnauthenticated),
        std::pair(ChannelWith(searcher), absl::StatusCode::kPermissionDenied)}) {
    EXPECT_EQ(GetItems(channel, 1000).code(), code);
    EXPECT_EQ(CollectionOfLastCall(), "birds");
    EXPECT_EQ(GetItems(channel, 70'000).code(), code);
    EXPECT_EQ(CollectionOfLastCall(), "");
  }
}

TEST_F(UnreadMessages, AreReadOfWhoMayCall) {
  const std::string fish = MakeKey(kWriteScope, {"fish"}).text();
  EXPECT_THAT(GetItems(ChannelWith(fish), 70'000),
              FailsWith(absl::StatusCode::kPermissionDenied, "is not for collection 'birds'"));
  EXPECT_EQ(CollectionOfLastCall(), "birds");
  EXPECT_THAT(GetItems(ChannelWith(admin_), 70'000), IsOk());
  EXPECT_EQ(CollectionOfLastCall(), "birds");
}

}  // namespace
}  // namespace privatemail::testing

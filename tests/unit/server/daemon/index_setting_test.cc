// Index settings: from text to the index that callers see.
#include <grpcpp/grpcpp.h>

#include "common/rpc/status.h"
#include "server/config/settings.h"
#include "tests/unit/server/services/service_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::StartsWith;

const Setting& Named(absl::string_view key) {
  for (const Setting& setting : Settings()) {
    if (setting.key == key) return setting;
  }
  ADD_FAILURE() << key;
  return Settings().front();
}

TEST(IndexSettings, MapToCatalogOptions) {
  DaemonOptions options;
  EXPECT_FALSE(ToCatalogOptions(options).index.approximate);
  EXPECT_EQ(ToCatalogOptions(options).index.recall, .99);
  EXPECT_THAT(AssignText(Named("index"), "--index", "ivf", &options), IsOk());
  EXPECT_THAT(AssignText(Named("index_recall"), "--index-recall", "0.5", &options), IsOk());
  EXPECT_TRUE(ToCatalogOptions(options).index.approximate);
  EXPECT_EQ(ToCatalogOptions(options).index.recall, .5);
}

class IndexSettingTest : public ServiceTest {
 protected:
  std::string Index() const {
    grpc::ClientContext context;
    v1::GetCollectionRequest request;
    request.set_collection("fruit");
    v1::GetCollectionResponse response;
    EXPECT_THAT(FromGrpc(retrieval_->GetCollection(&context, request, &response)), IsOk());
    return response.index();
  }
};

TEST_F(IndexSettingTest, ReloadAppliesToNextBuild) {
  grpc::ClientContext context;
  v1::CreateCollectionRequest request = Fruit();
  request.mutable_settings()->set_embedding_dim(5);
  request.mutable_settings()->set_kernel_bandwidth(6);  // wide: builds are quick
  v1::CreateCollectionResponse created;
  ASSERT_THAT(FromGrpc(collections_->CreateCollection(&context, request, &created)), IsOk());
  v1::UpsertItemsResponse totals;
  const std::vector<Item> items = MakeItems(10'000, 1);
  std::vector<v1::UpsertItemsRequest> messages;
  for (size_t begin = 0; begin < items.size(); begin += 1000) {
    messages.push_back(Message("fruit", {items.begin() + begin, items.begin() + begin + 1000}));
  }
  ASSERT_THAT(Upsert(messages, &totals), IsOk());
  EXPECT_EQ(Index(), "");
  std::vector<v1::BuildEmbeddingResponse> progress;
  ASSERT_THAT(Build("fruit", &progress), IsOk());
  EXPECT_EQ(Index(), "exact, k-d tree");
  DaemonOptions updated = daemon_->options();
  updated.index = "ivf";
  updated.index_recall = .9;
  daemon_->Reload(updated);
  EXPECT_EQ(Index(), "exact, k-d tree");
  ASSERT_THAT(Build("fruit", &progress), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return Index() != "exact, k-d tree; IVF is being built"; }));
  EXPECT_THAT(Index(), StartsWith("IVF of 200 lists, "));
}

}  // namespace
}  // namespace privatemail::testing

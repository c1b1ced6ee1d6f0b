#include "client/cli/item_cache.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/items/item_code.h"
#include "common/wire/codec.h"
#include "common/wire/parameters_proto.h"
#include "tests/testing/matchers.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client::cli {
namespace {

constexpr int kAnchors = 20;
constexpr int kDim = 8;

// Another seed gives other anchors and another digest.
v1::GetCollectionResponse Collection(int seed = 1) {
  Anchors anchors{NormalRows(kAnchors, kDim, seed), {}};
  CellPartition partition{.cells = 4, .cell_of_anchor = {}};
  for (int i = 0; i < kAnchors; ++i) {
    anchors.labels.push_back(i % 5);
    partition.cell_of_anchor.push_back(i % 4);
  }
  const PublicParameters parameters = *MakePublicParameters(
      kUuid, EmbeddingSettings{}, anchors, {}, "vectors", {partition}, CellCode::kFloat16);
  v1::GetCollectionResponse collection;
  ToProto(parameters, collection.mutable_parameters());
  collection.set_fingerprint(Fingerprint(parameters));
  collection.set_name("things");
  return collection;
}

std::vector<v1::RetrieveCellsResponse> AnswerOf(int item) {
  v1::RetrieveCellsResponse message;
  message.add_ids(absl::StrCat("item ", item));
  message.add_labels(item % 5);
  const Eigen::RowVectorXf row = NormalRows(1, kDim, 100 + item);
  AppendScalarCode(CellCode::kFloat16, row / row.norm(), message.mutable_codes());
  message.set_items_version(1);
  return {message};
}

int64_t ItemsIn(const TemporaryFolder& folder) {
  const absl::StatusOr<CachedItems> cached = LoadCachedItems(folder.path(), "things");
  EXPECT_THAT(cached, IsOk());
  return cached.ok() ? cached->items.items() : -1;
}

std::string OnlyFileIn(const TemporaryFolder& folder) {
  return std::filesystem::directory_iterator(folder.path())->path();
}

TEST(ItemCache, AnswersAccumulateUntilTheDigestChanges) {
  const TemporaryFolder folder;
  EXPECT_THAT(LoadCachedItems(folder.path(), "things"),
              FailsWith(kNotFound, "nothing was received for cells of collection things yet"));
  for (const int item : {1, 2, 1}) {
    ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(item)), IsOk());
  }
  EXPECT_EQ(ItemsIn(folder), 2);
  ASSERT_THAT(CacheItems(folder.path(), Collection(2), {}, AnswerOf(3)), IsOk());
  EXPECT_EQ(ItemsIn(folder), 1) << "items of another collection of this name are removed";
}

TEST(ItemCache, DamagedFileIsRenamed) {
  const TemporaryFolder folder;
  ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(1)), IsOk());
  const std::string path = OnlyFileIn(folder);
  std::ofstream(path, std::ios::app) << "more";
  ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(2)), IsOk());
  EXPECT_EQ(ItemsIn(folder), 1);
  EXPECT_EQ(std::filesystem::file_size(path + ".damaged"), std::filesystem::file_size(path) + 4);
}

TEST(AnswerCache, WritesPeriodicallyAndOnFinish) {
  const TemporaryFolder folder;
  AnswerCache at_once(folder.path(), Collection(), {}, std::chrono::seconds(0));
  for (const int item : {1, 2}) {
    at_once.Add(AnswerOf(item));
    EXPECT_EQ(ItemsIn(folder), item);
  }
  AnswerCache later(folder.path(), Collection(), {}, std::chrono::hours(1));
  later.Add(AnswerOf(3));
  EXPECT_EQ(ItemsIn(folder), 2);
  ASSERT_THAT(later.Finish(), IsOk());
  EXPECT_EQ(ItemsIn(folder), 3);
  ASSERT_THAT(at_once.Finish(), IsOk());
  EXPECT_EQ(ItemsIn(folder), 3) << "nothing was left to write";
}

TEST(AnswerCache, FinishReturnsFirstErrorAndOtherAnswersAreCached) {
  const TemporaryFolder folder;
  AnswerCache cache(folder.path(), Collection(), {}, std::chrono::seconds(0));
  std::vector<v1::RetrieveCellsResponse> bad = AnswerOf(1);
  bad[0].mutable_codes()->pop_back();
  cache.Add(bad);
  cache.Add(AnswerOf(2));
  EXPECT_THAT(cache.Finish(), FailsWith(absl::StatusCode::kDataLoss, "codes"));
  EXPECT_EQ(ItemsIn(folder), 1);
}

}  // namespace
}  // namespace privatemail::client::cli

#include "client/queries/item_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/matchers.h"
#include "tests/testing/published_things.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

v1::GetCollectionResponse Collection(unsigned seed = 1) {
  return PublishedThings(1, CellCode::kFloat16, seed).collection;
}

std::vector<v1::RetrieveCellsResponse> AnswerOf(int item) {
  return {CellMessage(PublishedThings(1, CellCode::kFloat16).parameters, item, 1)};
}

int64_t ItemsIn(const TemporaryFolder& folder) {
  const absl::StatusOr<CachedItems> cached = LoadCachedItems(folder.path(), "things");
  EXPECT_THAT(cached, IsOk());
  return cached.ok() ? cached->items.items() : -1;
}

std::string OnlyFileIn(const TemporaryFolder& folder) {
  return std::filesystem::directory_iterator(folder.path())->path();
}

void Ignore(const std::string&) {}

TEST(ItemCache, AnswersAccumulateUntilTheDigestChanges) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const TemporaryFolder folder;
  EXPECT_THAT(LoadCachedItems(folder.path(), "things"),
              FailsWith(kNotFound, "nothing was received for cells of collection things yet"));
  for (const int item : {1, 2, 1}) {
    ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(item), Ignore), IsOk());
  }
  EXPECT_EQ(ItemsIn(folder), 2);
  ASSERT_THAT(CacheItems(folder.path(), Collection(2), {}, AnswerOf(3), warn), IsOk());
  EXPECT_EQ(ItemsIn(folder), 1) << "items of another collection of this name are removed";
  EXPECT_THAT(warnings, ::testing::SizeIs(1));
}

TEST(ItemCache, ConcurrentWritersLoseNothing) {
  constexpr int kWriters = 3, kItems = 8;
  const TemporaryFolder folder;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(::fork());
    ASSERT_GE(writers.back(), 0);
    if (writers.back() != 0) continue;
    bool cached = true;
    for (int i = 0; i < kItems; ++i) {
      const auto answer = AnswerOf(writer * kItems + i);
      cached = CacheItems(folder.path(), Collection(), {}, answer, Ignore).ok() && cached;
    }
    ::_exit(cached ? 0 : 1);
  }
  for (const pid_t writer : writers) {
    int status = -1;
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ItemsIn(folder), kWriters * kItems);
}

TEST(ItemCache, DamagedFileIsRenamed) {
  const TemporaryFolder folder;
  ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(1), Ignore), IsOk());
  const std::string path = OnlyFileIn(folder);
  std::ofstream(path, std::ios::app) << "more";
  ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(2), Ignore), IsOk());
  EXPECT_EQ(ItemsIn(folder), 1);
  EXPECT_EQ(std::filesystem::file_size(path + ".damaged"), std::filesystem::file_size(path) + 4);
}

TEST(ItemCache, UnreadableFileIsNotReplaced) {
  const TemporaryFolder folder;
  ASSERT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(1), Ignore), IsOk());
  const std::string path = OnlyFileIn(folder), aside = folder / "aside";
  std::filesystem::rename(path, aside);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(CacheItems(folder.path(), Collection(), {}, AnswerOf(2), Ignore),
              FailsWith(absl::StatusCode::kFailedPrecondition, "must be a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::filesystem::rename(aside, path);
  EXPECT_EQ(ItemsIn(folder), 1);
}

TEST(AnswerCache, WritesPeriodicallyAndOnFinish) {
  const TemporaryFolder folder;
  AnswerCache at_once(folder.path(), Collection(), {}, Ignore, std::chrono::seconds(0));
  for (const int item : {1, 2}) {
    at_once.Add(AnswerOf(item));
    EXPECT_EQ(ItemsIn(folder), item);
  }
  AnswerCache later(folder.path(), Collection(), {}, Ignore, std::chrono::hours(1));
  later.Add(AnswerOf(3));
  EXPECT_EQ(ItemsIn(folder), 2);
  ASSERT_THAT(later.Finish(), IsOk());
  EXPECT_EQ(ItemsIn(folder), 3);
  ASSERT_THAT(at_once.Finish(), IsOk());
  EXPECT_EQ(ItemsIn(folder), 3) << "nothing was left to write";
}

TEST(AnswerCache, FinishReturnsFirstErrorAndOtherAnswersAreCached) {
  const TemporaryFolder folder;
  AnswerCache cache(folder.path(), Collection(), {}, Ignore, std::chrono::seconds(0));
  std::vector<v1::RetrieveCellsResponse> bad = AnswerOf(1);
  bad[0].mutable_codes()->pop_back();
  cache.Add(bad);
  cache.Add(AnswerOf(2));
  EXPECT_THAT(cache.Finish(), FailsWith(absl::StatusCode::kDataLoss, "codes"));
  EXPECT_EQ(ItemsIn(folder), 1);
}

}  // namespace
}  // namespace privatemail::client

// Killed processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

constexpr int kBatch = 50;

// Upserts batches forever and writes a byte to `acknowledge` after each.
[[noreturn]] void IngestUntilKilled(const std::string& directory,
                                    const PublicParameters& parameters, int acknowledge) {
  auto store = SqliteStore::Open(directory);
  for (int batch = 0; store.ok(); ++batch) {
    std::vector<Item> items;
    items.reserve(kBatch);
    for (int i = 0; i < kBatch; ++i) {
      items.push_back(MakeItem(absl::StrFormat("%06d", batch * kBatch + i), 3, i));
    }
    if (!(*store)->Upsert(parameters, items).ok()) break;
    if (::write(acknowledge, "x", 1) != 1) break;
  }
  ::_exit(1);
}

// Kills an ingesting child after `acknowledged` batches; returns how many were acknowledged.
int KillAfter(int acknowledged, const std::string& directory, const PublicParameters& parameters) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    IngestUntilKilled(directory, parameters, ends[1]);
  }
  ::close(ends[1]);
  int seen = 0;
  char byte;
  while (seen < acknowledged && ::read(ends[0], &byte, 1) == 1) ++seen;
  ::kill(child, SIGKILL);
  while (::read(ends[0], &byte, 1) == 1) ++seen;  // acknowledged before the signal struck
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
  return seen;
}

TEST(StoreCrash, SigkillKeepsAcknowledgedBatchesWhole) {
  for (const int wanted : {1, 3, 8, 20}) {
    const TemporaryFolder directory;
    const StoredCollection collection = SmallCollection("birds");
    {
      auto store = SqliteStore::Open(directory.path());
      ASSERT_THAT(store, IsOk());
      ASSERT_THAT((*store)->Create(collection), IsOk());
    }
    const int acknowledged = KillAfter(wanted, directory.path(), collection.parameters);
    auto store = SqliteStore::Open(directory.path());
    ASSERT_THAT(store, IsOk());
    const auto gallery = (*store)->LoadGallery(collection.parameters);
    ASSERT_THAT(gallery, IsOk());
    const size_t items = gallery->ids.size();
    EXPECT_GE(items, static_cast<size_t>(acknowledged) * kBatch);
    EXPECT_EQ(items % kBatch, 0u) << "a batch is there in part";
    EXPECT_EQ((*store)->LoadCollections()->front().items, items);
    for (size_t i = 0; i < items; ++i) {
      EXPECT_EQ(gallery->ids[i], absl::StrFormat("%06d", static_cast<int>(i)));
    }
  }
}

// Imports a large collection after a byte to `start`.
[[noreturn]] void ImportUntilKilled(const std::string& directory,
                                    const StoredCollection& collection, const Gallery& gallery,
                                    int start) {
  auto store = SqliteStore::Open(directory);
  if (store.ok() && ::write(start, "x", 1) == 1) {
    Import(store->get(), collection, gallery).IgnoreError();
  }
  ::pause();
  ::_exit(1);
}

TEST(StoreCrash, KilledImportIsCompleteOrAbsent) {
  constexpr int kItems = 5000;
  Gallery gallery;
  gallery.features = FloatMatrix::Ones(kItems, kDim);
  gallery.labels.assign(kItems, 3);
  gallery.payloads.assign(kItems, "\"" + std::string(200, 'x') + "\"");
  for (int i = 0; i < kItems; ++i) gallery.ids.push_back(absl::StrFormat("%06d", i));
  const StoredCollection collection = SmallCollection("birds");
  int interrupted = 0;
  for (const int milliseconds : {0, 2, 5, 10, 20, 40, 80, 160}) {
    const TemporaryFolder directory;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) ImportUntilKilled(directory.path(), collection, gallery, ends[1]);
    char byte;
    ASSERT_EQ(::read(ends[0], &byte, 1), 1);
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    ::close(ends[0]);
    ::close(ends[1]);

    auto store = SqliteStore::Open(directory.path());
    ASSERT_THAT(store, IsOk());
    if ((*store)->ListStates()->empty()) {
      ++interrupted;
      ASSERT_THAT(Import(store->get(), collection, gallery), IsOk());
    }
    const auto stored = (*store)->LoadGallery(collection.parameters);
    ASSERT_THAT(stored, IsOk());
    EXPECT_EQ(stored->ids, gallery.ids);
    EXPECT_EQ((*store)->ListStates()->front().items, static_cast<uint64_t>(kItems));
  }
  EXPECT_GE(interrupted, 1);
}

}  // namespace
}  // namespace privatemail::testing

// A mixed load on a catalog, for the thread sanitizer, which does not support gRPC.
// PRIVATEMAIL_LOAD_SECONDS sets its length, by default 5 s.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "server/engine/catalog.h"
#include "server/engine/maintenance.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::steady_clock;

constexpr int kBaseItems = 300;
constexpr int kCrows = 10'000;
constexpr Eigen::Index kCrowColumns = 5;  // too many for an R-tree
constexpr int kSearchers = 16;
constexpr int kWriters = 2;

std::chrono::seconds Duration() {
  const char* const text = std::getenv("PRIVATEMAIL_LOAD_SECONDS");
  return std::chrono::seconds(text == nullptr ? 5 : std::atoi(text));
}

std::optional<PayloadFilter> Below(int bound) {
  // More paths than are kept.
  return *PayloadFilter::Parse(
      absl::StrCat("{\"path\":\"path", bound % 20, "\",\"lt\":", bound, "}"));
}

// Concurrent builds and deletions may overtake a scheduled build.
void ExpectBuiltOrOvertaken(const std::string& name, const absl::Status& outcome) {
  EXPECT_TRUE(outcome.ok() || absl::IsAborted(outcome) || absl::IsNotFound(outcome) ||
              absl::IsCancelled(outcome))
      << name << ": " << outcome;
}

class CoreLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    Create("fruit", SmallSettings(), kBaseItems);
    EmbeddingSettings settings = SmallSettings();
    settings.embedding_dim = kCrowColumns;
    settings.kernel_bandwidth = 6;  // wide enough for a polynomial: builds are quick
    Create("crows", settings, kCrows);
  }

  void Create(const std::string& name, const EmbeddingSettings& settings, int items) {
    const auto made = catalog_->Create({name, settings, SmallAnchors(), {}, "vectors"});
    ASSERT_THAT(made, IsOk());
    ASSERT_THAT(catalog_->Upsert(*made, MakeItems(items, 1)), IsOk());
    ASSERT_THAT(catalog_->Build(name, nullptr), IsOk());
  }

  // Until everything has happened once, however slow the machine is, but no longer than a minute.
  bool GoesOn() const {
    const auto now = steady_clock::now();
    return !HasFailure() && (now < end_ || (!EverythingHappened() && now < end_ + minutes(1)));
  }
  bool EverythingHappened() const { return builds_ > 0 && copies_ > 0; }

  void Search(int number);
  void Write(int number);
  void Read();
  void Build(const std::string& name);

  absl::Status SearchFruit(int number, uint64_t* seen_version);
  absl::Status SearchCrows();
  absl::Status CopyAndDelete();

  void SnapshotAndRestore() {
    for (; GoesOn(); ++copies_) EXPECT_THAT(CopyAndDelete(), IsOk());
  }

  void Reload() {
    for (int reloads = 0; GoesOn(); ++reloads) {
      maintenance_.SetOptions({.01, absl::Milliseconds(50 + reloads % 2)});
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Catalog> catalog_ =
      *Catalog::Open(*SqliteStore::Open(folder_ / "data"), folder_.path());
  Maintenance maintenance_{
      catalog_.get(),
      RebuildOptions{.01, absl::Milliseconds(50)},
      {[](const CollectionView& /*view*/) { return absl::OkStatus(); }, ExpectBuiltOrOvertaken}};
  steady_clock::time_point end_;  // of the load, once it has begun
  std::atomic<int64_t> builds_ = 0;
  std::atomic<int64_t> copies_ = 0;
};

absl::Status CoreLoad::SearchFruit(int number, uint64_t* seen_version) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find("fruit"));
  RetrievalQuery query{Matrix::Random(15, 2), number % 2 == 0 ? 3 : 0, 5, [] { return false; }};
  query.hidden = view.hidden;
  if (number % 3 == 0) query.filter = Below(number);
  const Retriever& retriever = *view.retriever;
  PM_ASSIGN_OR_RETURN(const RetrievalAnswer answer, retriever.Retrieve(query));
  for (const Neighbor& neighbor : answer.slots[0]) {
    EXPECT_EQ(retriever.RowOf(retriever.IdOf(neighbor.row)), neighbor.row);
  }
  EXPECT_GE(retriever.version(), *seen_version);
  *seen_version = retriever.version();
  return absl::OkStatus();
}

absl::Status CoreLoad::SearchCrows() {
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find("crows"));
  RetrievalQuery query{Matrix::Random(15, kCrowColumns), 0, 5, [] { return false; }};
  query.hidden = view.hidden;
  PM_ASSIGN_OR_RETURN(const RetrievalAnswer answer, view.retriever->Retrieve(query));
  for (const std::vector<Neighbor>& nearest : answer.slots) EXPECT_EQ(nearest.size(), 5u);
  return absl::OkStatus();
}

void CoreLoad::Search(int number) {
  uint64_t seen_version = 0;
  for (int call = number; GoesOn(); ++call) {
    EXPECT_THAT(call % 5 == 4 ? SearchCrows() : SearchFruit(call, &seen_version), IsOk());
  }
}

// Records its writes and finds them at the end.
void CoreLoad::Write(int number) {
  std::mt19937 bits(static_cast<unsigned>(number));
  std::map<std::string, Item> stored;
  while (GoesOn()) {
    const std::string id = absl::StrFormat("writer-%d-%02d", number, bits() % 60);
    Item item = MakeItem(id, 3, static_cast<unsigned>(bits()));
    item.payload = absl::StrFormat(R"({"path%d":%d})", bits() % 20, bits() % 100);
    const bool deletes = bits() % 3 == 0;
    const CollectionView fruit = *catalog_->Find("fruit");
    EXPECT_THAT(deletes ? catalog_->DeleteItems(fruit, {id}).status()
                        : catalog_->Upsert(fruit, {&item, 1}).status(),
                IsOk());
    stored.erase(id);
    if (!deletes) stored.emplace(id, item);
  }
  for (const auto& [id, item] : stored) {
    const auto found = catalog_->GetItems(*catalog_->Find("fruit"), {&id, 1});
    ASSERT_THAT(found, IsOk());
    ASSERT_EQ(found->size(), 1u) << id;
    EXPECT_EQ((*found)[0].payload, item.payload);
    EXPECT_EQ((*found)[0].features, item.features);
  }
}

void CoreLoad::Read() {
  while (GoesOn()) {
    const CollectionView fruit = *catalog_->Find("fruit");
    EXPECT_THAT(catalog_->ScrollItems(fruit, Below(40), "", 100), IsOk());
    EXPECT_THAT(catalog_->CountChanges(fruit), IsOk());
    EXPECT_THAT(catalog_->CountItems(fruit, std::nullopt, nullptr), IsOk());
    for (const CollectionView& view : catalog_->List()) view.changes_since_embedding();
  }
}

void CoreLoad::Build(const std::string& name) {
  while (GoesOn()) {
    const absl::Status status = catalog_->Build(name, nullptr).status();
    builds_ += status.ok() && name == "fruit" ? 1 : 0;
    if (status.ok()) continue;
    // The build of the rebuild scheduler was first.
    EXPECT_EQ(name, "fruit");
    EXPECT_THAT(status, FailsWith(kAborted, "is being built already"));
  }
}

absl::Status CoreLoad::CopyAndDelete() {
  const CollectionView fruit = *catalog_->Find("fruit");
  PM_ASSIGN_OR_RETURN(SnapshotContents contents, Parse(SnapshotOf(*catalog_, fruit)));
  contents.collection.name = "copy";
  PM_ASSIGN_OR_RETURN(const CollectionView copy, Restore(catalog_.get(), contents));
  EXPECT_GE(copy.items, static_cast<uint64_t>(kBaseItems));
  EXPECT_THAT(catalog_->Build("copy", nullptr), IsOk());
  return catalog_->Delete("copy").status();
}

TEST_F(CoreLoad, CallsReturnDocumentedStatuses) {
  end_ = steady_clock::now() + Duration();
  std::vector<std::thread> threads;
  for (int i = 0; i < kSearchers; ++i) threads.emplace_back([this, i] { Search(i); });
  for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { Write(i); });
  threads.emplace_back([this] { Read(); });
  threads.emplace_back([this] { Build("fruit"); });
  threads.emplace_back([this] { Build("crows"); });
  threads.emplace_back([this] { SnapshotAndRestore(); });
  threads.emplace_back([this] { Reload(); });
  for (std::thread& thread : threads) thread.join();
  std::puts(absl::StrFormat("core load for %d s: %d builds, %d copies", Duration().count(),
                            builds_.load(), copies_.load())
                .c_str());
  EXPECT_TRUE(EverythingHappened());
}

}  // namespace
}  // namespace privatemail::testing

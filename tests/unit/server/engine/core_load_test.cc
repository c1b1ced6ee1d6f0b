// A mixed load on the daemon without gRPC, which the thread sanitizer does not support.
// PRIVATEMAIL_LOAD_SECONDS sets its length, by default 5 s.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/wire/payload_filter_proto.h"
#include "tests/unit/server/engine/core_calls.h"
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
constexpr int kLimitedSearchers = 2;
constexpr int kWriters = 2;

std::chrono::seconds Duration() {
  const char* const text = std::getenv("PRIVATEMAIL_LOAD_SECONDS");
  return std::chrono::seconds(text == nullptr ? 5 : std::atoi(text));
}

std::optional<PayloadFilter> Below(int bound) {
  v1::PayloadFilter filter;
  filter.mutable_range()->set_path(absl::StrCat("path", bound % 20));  // more than are kept
  filter.mutable_range()->set_lt(bound);
  return *FromProto("filter", filter);
}

class CoreLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto fruit =
        core_.catalog().Create({"fruit", SmallSettings(), SmallAnchors(), {}, "vectors"});
    ASSERT_THAT(fruit, IsOk());
    ASSERT_THAT(core_.catalog().Upsert(*fruit, MakeItems(kBaseItems, 1)), IsOk());
    ASSERT_THAT(core_.catalog().Build("fruit", nullptr), IsOk());

    EmbeddingSettings settings = SmallSettings();
    settings.embedding_dim = kCrowColumns;
    settings.kernel_bandwidth = 6;  // wide enough for a polynomial: builds are quick
    const auto crows = core_.catalog().Create({"crows", settings, SmallAnchors(), {}, "vectors"});
    ASSERT_THAT(crows, IsOk());
    ASSERT_THAT(core_.catalog().Upsert(*crows, MakeItems(kCrows, 1)), IsOk());
    ASSERT_THAT(core_.catalog().Build("crows", nullptr), IsOk());
  }

  // Until everything has happened once, however slow the machine is, but no longer than a minute.
  bool GoesOn() const {
    const auto now = steady_clock::now();
    return !HasFailure() && (now < end_ || (!EverythingHappened() && now < end_ + minutes(1)));
  }
  bool EverythingHappened() const {
    return busy_ > 0 && builds_ > 0 && copies_ > 0 && revoked_ > 0;
  }

  // Retries a call that was refused as busy.
  absl::Status Persist(const std::string& key, const std::function<absl::Status()>& work) {
    while (true) {
      const absl::Status status = core_.Call(key, work);
      if (!IsBusy(status)) return status;
      ++busy_;
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  // For calls that only admission control can refuse.
  void Expect(const std::string& key, const std::function<absl::Status()>& work) {
    EXPECT_THAT(Persist(key, work), IsOk());
  }

  void Search(int number);
  void Write(int number);
  void Read();
  void Build();
  void BuildCrows();
  void SnapshotAndRestore();
  void ChangeKeys();
  void Reload();

  absl::Status SearchFruit(int number, uint64_t* seen_version);
  absl::Status SearchCrows();
  absl::Status CopyAndDelete();

  CoreCalls core_;
  const std::string limited_key_ = core_.MakeKey(kSearchScope, 50).text;
  steady_clock::time_point end_;  // of the load, once it has begun
  std::atomic<int64_t> busy_ = 0;
  std::atomic<int64_t> builds_ = 0;
  std::atomic<int64_t> copies_ = 0;
  std::atomic<int64_t> revoked_ = 0;
};

absl::Status CoreLoad::SearchFruit(int number, uint64_t* seen_version) {
  const auto view = core_.catalog().Find("fruit");
  if (!view.ok()) return view.status();
  RetrievalQuery query{Matrix::Random(15, 2), number % 2 == 0 ? 3 : 0, 5, [] { return false; }};
  query.hidden = view->hidden;
  if (number % 3 == 0) query.filter = Below(number);
  const Retriever& retriever = *view->retriever;
  const auto answer = retriever.Retrieve(query);
  if (!answer.ok()) return answer.status();
  for (const Neighbor& neighbor : answer->slots[0]) {
    EXPECT_EQ(retriever.RowOf(retriever.IdOf(neighbor.row)), neighbor.row);
  }
  EXPECT_GE(retriever.version(), *seen_version);
  *seen_version = retriever.version();
  return absl::OkStatus();
}

absl::Status CoreLoad::SearchCrows() {
  const auto view = core_.catalog().Find("crows");
  if (!view.ok()) return view.status();
  RetrievalQuery query{Matrix::Random(15, kCrowColumns), 0, 5, [] { return false; }};
  query.hidden = view->hidden;
  const auto answer = view->retriever->Retrieve(query);
  if (!answer.ok()) return answer.status();
  for (const std::vector<Neighbor>& nearest : answer->slots) EXPECT_EQ(nearest.size(), 5u);
  return absl::OkStatus();
}

// The first threads share a key with a rate limit, and so a token bucket.
void CoreLoad::Search(int number) {
  const bool limited = number < kLimitedSearchers;
  const std::string key = limited ? limited_key_ : core_.MakeKey(kSearchScope).text;
  uint64_t seen_version = 0;
  for (int call = number; GoesOn(); ++call) {
    const absl::Status status = Persist(
        key, [&] { return call % 5 == 4 ? SearchCrows() : SearchFruit(call, &seen_version); });
    if (limited && absl::IsResourceExhausted(status)) continue;
    EXPECT_THAT(status, IsOk());
  }
}

// Records its writes and finds them at the end.
void CoreLoad::Write(int number) {
  const std::string key = core_.MakeKey(kWriteScope).text;
  std::mt19937 bits(static_cast<unsigned>(number));
  std::map<std::string, Item> stored;
  Catalog& catalog = core_.catalog();
  while (GoesOn()) {
    const std::string id = absl::StrFormat("writer-%d-%02d", number, bits() % 60);
    Item item = MakeItem(id, 3, static_cast<unsigned>(bits()));
    item.payload = absl::StrFormat(R"({"path%d":%d})", bits() % 20, bits() % 100);
    const bool deletes = bits() % 3 == 0;
    Expect(key, [&] {
      const CollectionView fruit = *catalog.Find("fruit");
      if (deletes) return catalog.DeleteItems(fruit, {id}).status();
      return catalog.Upsert(fruit, {&item, 1}).status();
    });
    stored.erase(id);
    if (!deletes) stored.emplace(id, item);
  }
  for (const auto& [id, item] : stored) {
    const auto found = catalog.GetItems(*catalog.Find("fruit"), {&id, 1});
    ASSERT_THAT(found, IsOk());
    ASSERT_EQ(found->size(), 1u) << id;
    EXPECT_EQ((*found)[0].payload, item.payload);
    EXPECT_EQ((*found)[0].features, item.features);
  }
}

void CoreLoad::Read() {
  const std::string key = core_.MakeKey(kWriteScope).text;
  Catalog& catalog = core_.catalog();
  while (GoesOn()) {
    Expect(key, [&] {
      const CollectionView fruit = *catalog.Find("fruit");
      const auto page = catalog.ScrollItems(fruit, Below(40), "", 100);
      EXPECT_THAT(catalog.CountChanges(fruit), IsOk());
      EXPECT_THAT(catalog.CountItems(fruit, std::nullopt, nullptr), IsOk());
      for (const CollectionView& view : catalog.List()) view.changes_since_embedding();
      return page.status();
    });
  }
}

void CoreLoad::Build() {
  const std::string key = core_.MakeKey(kWriteScope).text;
  while (GoesOn()) {
    const absl::Status status =
        Persist(key, [&] { return core_.catalog().Build("fruit", nullptr).status(); });
    builds_ += status.ok() ? 1 : 0;
    if (status.ok()) continue;
    // Of the rebuild scheduler.
    EXPECT_THAT(status, FailsWith(kAborted, "is being built already"));
  }
}

void CoreLoad::BuildCrows() {
  const std::string key = core_.MakeKey(kWriteScope).text;
  while (GoesOn()) {
    Expect(key, [&] { return core_.catalog().Build("crows", nullptr).status(); });
  }
}

absl::Status CoreLoad::CopyAndDelete() {
  Catalog& catalog = core_.catalog();
  const CollectionView fruit = *catalog.Find("fruit");
  auto contents = Parse(SnapshotOf(catalog, fruit));
  if (!contents.ok()) return contents.status();
  contents->collection.name = "copy";
  const auto copy = Restore(&catalog, *contents);
  if (!copy.ok()) return copy.status();
  EXPECT_GE(copy->items, static_cast<uint64_t>(kBaseItems));
  EXPECT_THAT(catalog.Build("copy", nullptr), IsOk());
  return catalog.Delete("copy").status();
}

void CoreLoad::SnapshotAndRestore() {
  const std::string key = core_.MakeKey(kAdminScope).text;
  for (; GoesOn(); ++copies_) Expect(key, [&] { return CopyAndDelete(); });
}

void CoreLoad::ChangeKeys() {
  const std::string admin = core_.MakeKey(kAdminScope).text;
  const auto nothing = [] { return absl::OkStatus(); };
  for (; GoesOn(); ++revoked_) {
    NewAccessKey key;
    Expect(admin, [&] {
      key = core_.MakeKey(kSearchScope);
      return absl::OkStatus();
    });
    Expect(key.text, nothing);
    Expect(admin, [&] { return core_.keys().Revoke(key.key.id).status(); });
    EXPECT_THAT(core_.Call(key.text, nothing),
                FailsWith(kUnauthenticated, "unknown, wrong or revoked"));
    EXPECT_FALSE(core_.keys().List().empty());
    EXPECT_THAT(core_.keys().CheckValid(key.key.id, absl::Now()),
                FailsWith(kUnauthenticated, "revoked"));
  }
}

void CoreLoad::Reload() {
  while (GoesOn()) {
    core_.Reload();
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST_F(CoreLoad, CallsReturnDocumentedStatuses) {
  end_ = steady_clock::now() + Duration();
  std::vector<std::thread> threads;
  for (int i = 0; i < kSearchers; ++i) threads.emplace_back([this, i] { Search(i); });
  for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { Write(i); });
  threads.emplace_back([this] { Read(); });
  threads.emplace_back([this] { Build(); });
  threads.emplace_back([this] { BuildCrows(); });
  threads.emplace_back([this] { SnapshotAndRestore(); });
  threads.emplace_back([this] { ChangeKeys(); });
  threads.emplace_back([this] { Reload(); });
  for (std::thread& thread : threads) thread.join();
  std::puts(absl::StrFormat("core load for %d s: %d calls, %d refused as busy, %d builds, "
                            "%d copies, %d keys revoked",
                            Duration().count(), core_.calls(), busy_.load(), builds_.load(),
                            copies_.load(), revoked_.load())
                .c_str());
  EXPECT_EQ(core_.audit_lines(), core_.calls());
  EXPECT_TRUE(EverythingHappened());
}

}  // namespace
}  // namespace privatemail::testing

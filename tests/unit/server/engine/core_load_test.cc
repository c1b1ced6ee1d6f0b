// A mixed load on the daemon without gRPC, which the thread sanitizer does not support.
// PRIVATEMAIL_LOAD_SECONDS sets its length, by default 5 s.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
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
constexpr int kLimitedSearchers = 2;
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

// Fewer places than callers.
Limits FewPlaces() {
  Limits limits;
  limits.max_concurrent = 8;
  limits.max_queued = 4;
  limits.queue_seconds = .2;
  return limits;
}

// Concurrent builds and deletions may overtake a scheduled build.
void ExpectBuiltOrOvertaken(const std::string& name, const absl::Status& outcome) {
  EXPECT_TRUE(outcome.ok() || absl::IsAborted(outcome) || absl::IsNotFound(outcome) ||
              absl::IsCancelled(outcome))
      << name << ": " << outcome;
}

// True if admission control refused the call.
bool IsBusy(const absl::Status& status) {
  return absl::IsResourceExhausted(status) &&
         absl::StartsWith(status.message(), "the server is busy: ");
}

// Calls take the steps of services/call.cc: key, rate limit, admission, thread pool, audit log.
// Thread-safe.
class CoreCalls {
 public:
  // Blocks. UNAUTHENTICATED, RESOURCE_EXHAUSTED (IsBusy or the key's rate), or the status of
  // `work`.
  absl::Status Call(const std::string& key_text, const std::function<absl::Status()>& work) {
    PM_ASSIGN_OR_RETURN(const std::shared_ptr<const AccessKey> key, keys_->Authenticate(key_text));
    PM_RETURN_IF_ERROR(rates_.Take(*key, RateLimiter::Clock::now()));
    PM_ASSIGN_OR_RETURN(Admission::Ticket ticket,
                        admission_.Enter({key->id, key->Has(kAdminScope)}));
    std::promise<absl::Status> done;
    thread_pool_.Run([&] {
      absl::Status status = ticket.Await([] { return false; });
      if (status.ok()) status = work();
      AuditEntry entry;
      entry.time = absl::Now();
      entry.key_id = key->id;
      entry.code = absl::StatusCodeToString(status.code());
      EXPECT_THAT(audit_->Write(entry), IsOk());
      ++calls_;
      // Moved, not copied: the reference count is in absl's library, which is not instrumented, so
      // that deleting the last copy would be reported as a race.
      done.set_value(std::move(status));
    });
    return done.get_future().get();
  }

  // The reload of SIGHUP, with other limits each time.
  void Reload() {
    Limits limits = FewPlaces();
    limits.max_concurrent -= ++reloads_ % 2;
    admission_.SetLimits(limits);
    builds_.SetOptions({.01, absl::Milliseconds(50 + reloads_ % 2)});
    EXPECT_THAT(keys_->Reload(), IsOk());
    EXPECT_THAT(audit_->Reopen(), IsOk());
  }

  // A new key for all collections; requests_per_second 0: no limit.
  NewAccessKey MakeKey(Scopes scopes, double requests_per_second = 0) {
    KeyGrant grant;
    grant.name = "caller";
    grant.scopes = scopes;
    grant.requests_per_second = requests_per_second;
    return *keys_->Create(std::move(grant));
  }

  KeyRing& keys() { return *keys_; }
  Catalog& catalog() { return *catalog_; }
  int64_t calls() const { return calls_; }
  int64_t audit_lines() const {
    std::ifstream file(folder_ / "audit.jsonl");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }

 private:
  const TemporaryFolder folder_;
  const std::unique_ptr<Catalog> catalog_ =
      *Catalog::Open(*SqliteStore::Open(folder_ / "data"), folder_.path());
  const std::unique_ptr<KeyRing> keys_ =
      *KeyRing::Open(KeyFile(folder_ / "keys"), folder_ / "admin.key");
  const std::unique_ptr<AuditLog> audit_ = *AuditLog::Open(folder_ / "audit.jsonl", 0);
  RateLimiter rates_;
  std::atomic<int64_t> calls_ = 0;
  std::atomic<int64_t> reloads_ = 0;
  Admission admission_{FewPlaces()};
  Maintenance builds_{
      catalog_.get(),
      RebuildOptions{.01, absl::Milliseconds(50)},
      {[](const CollectionView& /*view*/) { return absl::OkStatus(); },
       [](const std::string& /*name*/, double /*done*/) {}, ExpectBuiltOrOvertaken}};
  ThreadPool thread_pool_;  // last: what they do uses the others
};

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
    const auto made = core_.catalog().Create({name, settings, SmallAnchors(), {}, "vectors"});
    ASSERT_THAT(made, IsOk());
    ASSERT_THAT(core_.catalog().Upsert(*made, MakeItems(items, 1)), IsOk());
    ASSERT_THAT(core_.catalog().Build(name, nullptr), IsOk());
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
  void Build(const std::string& name);
  void ChangeKeys();

  absl::Status SearchFruit(int number, uint64_t* seen_version);
  absl::Status SearchCrows();
  absl::Status CopyAndDelete();

  void SnapshotAndRestore() {
    const std::string key = core_.MakeKey(kAdminScope).text;
    for (; GoesOn(); ++copies_) Expect(key, [&] { return CopyAndDelete(); });
  }

  void Reload() {
    while (GoesOn()) {
      core_.Reload();
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  CoreCalls core_;
  const std::string limited_key_ = core_.MakeKey(kSearchScope, 50).text;
  steady_clock::time_point end_;  // of the load, once it has begun
  std::atomic<int64_t> busy_ = 0;
  std::atomic<int64_t> builds_ = 0;
  std::atomic<int64_t> copies_ = 0;
  std::atomic<int64_t> revoked_ = 0;
};

absl::Status CoreLoad::SearchFruit(int number, uint64_t* seen_version) {
  PM_ASSIGN_OR_RETURN(const CollectionView view, core_.catalog().Find("fruit"));
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
  PM_ASSIGN_OR_RETURN(const CollectionView view, core_.catalog().Find("crows"));
  RetrievalQuery query{Matrix::Random(15, kCrowColumns), 0, 5, [] { return false; }};
  query.hidden = view.hidden;
  PM_ASSIGN_OR_RETURN(const RetrievalAnswer answer, view.retriever->Retrieve(query));
  for (const std::vector<Neighbor>& nearest : answer.slots) EXPECT_EQ(nearest.size(), 5u);
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

void CoreLoad::Build(const std::string& name) {
  const std::string key = core_.MakeKey(kWriteScope).text;
  while (GoesOn()) {
    const absl::Status status =
        Persist(key, [&] { return core_.catalog().Build(name, nullptr).status(); });
    builds_ += status.ok() && name == "fruit" ? 1 : 0;
    if (status.ok()) continue;
    // The build of the rebuild scheduler was first.
    EXPECT_EQ(name, "fruit");
    EXPECT_THAT(status, FailsWith(kAborted, "is being built already"));
  }
}

absl::Status CoreLoad::CopyAndDelete() {
  Catalog& catalog = core_.catalog();
  const CollectionView fruit = *catalog.Find("fruit");
  PM_ASSIGN_OR_RETURN(SnapshotContents contents, Parse(SnapshotOf(catalog, fruit)));
  contents.collection.name = "copy";
  PM_ASSIGN_OR_RETURN(const CollectionView copy, Restore(&catalog, contents));
  EXPECT_GE(copy.items, static_cast<uint64_t>(kBaseItems));
  EXPECT_THAT(catalog.Build("copy", nullptr), IsOk());
  return catalog.Delete("copy").status();
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

TEST_F(CoreLoad, CallsReturnDocumentedStatuses) {
  end_ = steady_clock::now() + Duration();
  std::vector<std::thread> threads;
  for (int i = 0; i < kSearchers; ++i) threads.emplace_back([this, i] { Search(i); });
  for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { Write(i); });
  threads.emplace_back([this] { Read(); });
  threads.emplace_back([this] { Build("fruit"); });
  threads.emplace_back([this] { Build("crows"); });
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

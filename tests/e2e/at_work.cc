#include "tests/e2e/at_work.h"

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "privatemail/search.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {

using std::chrono::microseconds;

void AtWork::UsePostgres(const std::string& conninfo) {
  const std::string file = folder_.Write("conninfo", conninfo + "\n");
  ::chmod(file.c_str(), 0600);
  flags_ = {"--store", "postgres", "--postgres-file", file};
}

void AtWork::Start() {
  Command flags = flags_;
  flags.insert(flags.begin(), {"--insecure", "--log-level", "warning"});
  daemon_ = std::make_unique<Daemon>(folder_ / "data", flags);
  ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
}

void AtWork::End() {
  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
}

void AtWork::Prepare() {
  Start();
  v1::CreateCollectionRequest things = NewThings();
  things.set_with_encrypted(true);
  ASSERT_THAT(Connect().CreateCollection(things), IsOk());
  for (int i = 0; i < 3; ++i) writers_.emplace_back(std::string(1, 'a' + i), "things", i + 1);
  for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 20), IsOk());
  BuildOnce();
}

void AtWork::BuildOnce() {
  const auto built = Connect().BuildEmbedding(
      "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
  ASSERT_THAT(built, IsOk());
  acknowledged_version_ = built->collection().embedding_version();
}

void AtWork::BuildUntilFailure(const AdminClient& transport) {
  while (true) {
    const auto built = transport.BuildEmbedding(
        "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
    if (!built.ok()) return;
    acknowledged_version_ = built->collection().embedding_version();
    ++builds_;
    std::this_thread::sleep_for(microseconds(5'000));  // paces the load, is not a wait
  }
}

void AtWork::WorkUntil(const std::function<void()>& strike, unsigned max_microseconds) {
  const AdminClient transport = Connect();
  std::atomic<bool> struck = false;
  std::vector<std::thread> threads;
  for (Writer& writer : writers_) {
    threads.emplace_back([&] {
      const absl::Status status = writer.WriteUntilFailure(transport);
      EXPECT_TRUE(struck) << "failed before the strike: " << status;
    });
  }
  threads.emplace_back([&] { BuildUntilFailure(transport); });
  threads.emplace_back([&] {
    const absl::Status status = snapshotter_.WorkUntilFailure(transport);
    EXPECT_TRUE(struck) << "failed before the strike: " << status;
    EXPECT_FALSE(absl::IsDataLoss(status)) << status;
  });
  // The random time of the strike is what is tested.
  std::this_thread::sleep_for(microseconds(bits_() % max_microseconds));
  struck = true;
  strike();
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::string> AtWork::SearchFaults(const AdminClient& transport,
                                              const v1::GetCollectionResponse& things,
                                              const Stored& stored) const {
  v1::RetrieveRequest request = RandomSearch(things);
  request.set_embedding_version(things.embedding_version());
  request.set_k(1000);
  const auto answer = transport.Retrieve(request);
  if (!answer.ok()) return {absl::StrCat("a search fails: ", answer.status().ToString())};
  std::vector<std::string> faults;
  for (const v1::Match& match : answer->slots(0).matches()) {
    if (stored.count(match.id()) > 0) continue;
    faults.push_back(absl::StrCat(match.id(), " was deleted and is found"));
  }
  const auto found = static_cast<uint64_t>(answer->slots(0).matches_size());
  if (found != things.embedded_items()) {
    faults.push_back(absl::StrCat("found ", found, " of ", things.embedded_items(), " embedded"));
  }
  return faults;
}

// An encrypted search for all items, once the daemon has loaded their rows.
std::vector<std::string> AtWork::EncryptedFaults(const Stored& stored) const {
  std::filesystem::create_directories(user_.state);
  std::filesystem::permissions(user_.state, std::filesystem::perms::owner_all);
  const auto client = SearchClient::Connect({.connection = Options(), .state_folder = user_.state});
  if (!client.ok()) return {client.status().ToString()};
  absl::StatusOr<SearchResponse> answer;
  const bool answered = WaitUntil([&] {
    answer = (*client)->Search({.collection = "things",
                                .targets = {{.features = Eigen::RowVectorXf::Ones(kFeatures)}},
                                .k = kMaxNeighbors,
                                .with_payloads = true});
    return !absl::IsUnavailable(answer.status());
  });
  if (!answered || !answer.ok()) {
    return {absl::StrCat("an encrypted search fails: ", answer.status().ToString())};
  }
  std::vector<std::string> faults;
  std::set<std::string> found;
  for (const Match& match : answer->results[0].matches) {
    const auto item = stored.find(match.id);
    if (!found.insert(match.id).second) faults.push_back(absl::StrCat(match.id, " is found twice"));
    if (item == stored.end()) {
      faults.push_back(absl::StrCat(match.id, " was deleted and is found under encryption"));
    } else if (match.label != item->second.label() || match.payload != item->second.payload()) {
      faults.push_back(absl::StrCat(match.id, " is found as it was before"));
    }
  }
  if (found.size() < stored.size()) {
    faults.push_back(absl::StrCat("found ", found.size(), " of ", stored.size(), " encrypted"));
  }
  return faults;
}

std::vector<std::string> AtWork::Faults() {
  const AdminClient transport = Connect();
  const absl::StatusOr<Stored> stored = StoredItems(transport, "things");
  if (!stored.ok()) return {absl::StrCat("items: ", stored.status().ToString())};
  std::vector<std::string> faults;
  const auto add = [&faults](std::vector<std::string> more) {
    for (std::string& fault : more) faults.push_back(std::move(fault));
  };
  for (Writer& writer : writers_) add(writer.Check(*stored));
  add(snapshotter_.Check(transport));
  const auto things = transport.GetCollection("things");
  if (!things.ok()) return {absl::StrCat("things: ", things.status().ToString())};
  if (things->items() != stored->size()) {
    faults.push_back(absl::StrCat(things->items(), " items counted, ", stored->size(), " there"));
  }
  const uint64_t version = things->embedding_version();
  if (version < acknowledged_version_ || version > acknowledged_version_ + 1) {
    faults.push_back(
        absl::StrCat("build ", acknowledged_version_, " was acknowledged, there: ", version));
  }
  acknowledged_version_ = version;
  add(SearchFaults(transport, *things, *stored));
  add(EncryptedFaults(*stored));
  return faults;
}

void AtWork::Check() {
  for (const std::string& fault : Faults()) {
    ++losses_;
    ADD_FAILURE() << fault;
  }
}

void AtWork::Report(const std::string& what, int times) const {
  int64_t messages = 0, items = 0, there = 0, not_there = 0;
  for (const Writer& writer : writers_) {
    messages += writer.acknowledged_messages();
    items += writer.acknowledged_items();
    there += writer.open_there();
    not_there += writer.open_not_there();
  }
  std::printf(
      "%d %s, %lld acknowledged writes of %lld items, %lld builds, %lld snapshots and %lld "
      "restored copies checked, %lld losses (of what was not acknowledged, %lld writes were "
      "there as a whole and %lld not at all)\n",
      times, what.c_str(), static_cast<long long>(messages), static_cast<long long>(items),
      static_cast<long long>(builds_), static_cast<long long>(snapshotter_.snapshots()),
      static_cast<long long>(snapshotter_.restored()), static_cast<long long>(losses_),
      static_cast<long long>(there), static_cast<long long>(not_there));
  EXPECT_GT(messages, times);
  EXPECT_EQ(losses_, 0);
}

}  // namespace privatemail::e2e

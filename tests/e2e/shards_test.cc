// A collection in two shards, one of them with a replica, behind a front: its answers are those of
// one daemon, and never partial.
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/stopwatch.h"
#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kCallers = 3;
// Two answers for one item differ by at most twice the proven error of scores (PRIVACY.md section
// 9, delta up to the 64 dimensions) and by the rounding of both to four digits.
constexpr double kTie = 2 * 7.0e-4 + 1e-4;

class Shards : public Service {
 protected:
  void SetUp() override {
    conninfo_ = server_.NewDatabase();
    conninfo_file_ = folder_.Write("conninfo", conninfo_ + "\n");
    ::chmod(conninfo_file_.c_str(), 0600);
    for (const char* name : {"1", "1-replica", "2"}) StartShard(name, "127.0.0.1:0");
    daemon_ = StartFront("front");
    user_.flags = {"--server", daemon_->address(), "--insecure"};
    Write("queries", SeparatedClasses(5, 3));
  }

  std::unique_ptr<Daemon> Start(const std::string& data, const std::string& listen,
                                const Command& flags) {
    auto daemon = std::make_unique<Daemon>(
        folder_ / data, Join({"--insecure", "--postgres-file", conninfo_file_}, flags), listen);
    EXPECT_TRUE(daemon->listening()) << daemon->program().Wait().err;
    return daemon;
  }
  // Names begin with the number of the shard.
  void StartShard(const std::string& name, const std::string& listen, int of = 2) {
    shards_[name].reset();
    shards_[name] = Start(name, listen, {"--shard", absl::StrCat(name.substr(0, 1), "/", of)});
  }
  std::unique_ptr<Daemon> StartFront(const std::string& name, const Command& more = {},
                                     const std::string& listen = "127.0.0.1:0") {
    const std::string shards =
        absl::StrCat(shards_["1"]->address(), "|", shards_["1-replica"]->address(), ", ",
                     shards_["2"]->address());
    return Start(name, listen, Join({"--shards", shards}, more));
  }
  void Kill(const std::string& name) {
    shards_[name]->program().Signal(SIGKILL);
    shards_[name]->program().Wait();
  }
  static AdminClient ConnectTo(const Daemon& daemon) {
    ConnectionOptions options;
    options.server = daemon.address();
    options.insecure = true;
    return *AdminClient::Create(options);
  }
  static bool IsServing(const Daemon& daemon, const std::string& collection = "") {
    return ConnectTo(daemon).IsServing(collection).value_or(false);
  }

  void CreateThings() {
    v1::CreateCollectionRequest things = NewThings();
    things.set_with_encrypted(true);
    ASSERT_THAT(Connect().CreateCollection(things), IsOk());
    Fill();
  }

  // Ten items, which lie in both shards, with one payload.
  static void UpsertBatch(const AdminClient& transport, int batch) {
    static const Labelled rows = SeparatedClasses(10, 4);
    bool sent = false;
    EXPECT_THAT(transport.UpsertItems([&](v1::UpsertItemsRequest* message) {
      if (std::exchange(sent, true)) return false;
      message->set_collection("things");
      for (int i = 0; i < 10; ++i) {
        v1::Item* item = message->add_items();
        item->set_id(absl::StrCat("w", i));
        item->set_label(rows.labels[i]);
        item->mutable_features()->Assign(rows.vectors.row(i).begin(), rows.vectors.row(i).end());
        item->set_payload(std::to_string(batch));
      }
      return true;
    }),
                IsOk());
  }

  Outcome Query(int row, const Command& more = {}, const std::string& server = "") const {
    Command query = {"query",     "things",           "--scheme", "encrypted",
                     "--vectors", Vectors("queries"), "--row",    std::to_string(row),
                     "--json"};
    User user = user_;
    if (!server.empty()) user.flags[1] = server;
    user.state = absl::StrCat(user.state, "-", row);  // calls of one state take turns
    return user.Run(Join(query, more));
  }
  static std::set<std::string> IdsOf(const Outcome& outcome) {
    std::set<std::string> ids;
    json answer = outcome.json();
    for (const json& match : answer["matches"]) ids.insert(match["id"]);
    return ids;
  }

  // Runs `work` while callers ask for all items; returns what did not answer with all of them.
  template <typename Work>
  std::vector<std::string> FailuresDuring(Work work) {
    std::atomic<bool> ended = false;
    std::atomic<int> answers = 0;
    std::mutex mutex;
    std::vector<std::string> failures;
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&, caller] {
        while (!ended) {
          const Stopwatch running;
          const Outcome outcome = Query(caller, {"-k", "1000"});
          ++answers;
          const std::lock_guard<std::mutex> guard(mutex);
          longest_ = std::max(longest_, running.Elapsed());
          if (outcome.exit_code == 0 && IdsOf(outcome).size() == kItems) continue;
          failures.push_back(outcome.exit_code == 0 ? "partial: " + outcome.out : outcome.err);
        }
      });
    }
    const auto wait = [&] {
      const int before = answers;
      EXPECT_TRUE(WaitUntil([&] { return answers >= before + 2 * kCallers; }));
    };
    wait();
    work(wait);
    ended = true;
    for (std::thread& caller : callers) caller.join();
    return failures;
  }

  PostgresServer server_;
  std::string conninfo_;
  std::string conninfo_file_;
  std::map<std::string, std::unique_ptr<Daemon>> shards_;
  absl::Duration longest_;  // time of a search of FailuresDuring
};

TEST_F(Shards, AnswersEqualThoseOfOneDaemon) {
  CreateThings();
  const std::unique_ptr<Daemon> whole = Start("whole", "127.0.0.1:0", {});
  for (int row = 0; row < 5; ++row) {
    const Outcome ours = Query(row, {"-k", "30"}),
                  theirs = Query(row, {"-k", "1000"}, whole->address());
    ASSERT_EQ(ours.exit_code, 0) << ours.err;
    ASSERT_EQ(theirs.exit_code, 0) << theirs.err;
    const json a = ours.json()["matches"], b = theirs.json()["matches"];
    ASSERT_EQ(a.size(), 30u);
    ASSERT_EQ(b.size(), static_cast<size_t>(kItems));
    std::map<std::string, double> similarity;
    for (const json& match : b) similarity[match["id"]] = match["similarity"];
    for (size_t i = 0; i < a.size(); ++i) {  // the same but for ties
      EXPECT_NEAR(a[i]["similarity"], similarity.at(a[i]["id"]), kTie);
      EXPECT_NEAR(a[i]["similarity"], b[i]["similarity"], kTie) << row;
    }
  }
  const json info = Info();
  EXPECT_EQ(info["items"], kItems);
  EXPECT_EQ(Answer({"collection", "list"})[0]["items"], kItems);
}

TEST_F(Shards, WritesThroughTheFrontAreFoundAtOnce) {
  CreateThings();
  EXPECT_EQ(IdsOf(Query(0, {"-k", "1000"})).size(), kItems);
  for (int id = 0; id < 10; ++id) {
    Answer({"items", "delete", "things", std::to_string(id)});
    const Outcome outcome = Query(0, {"-k", "1000"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::set<std::string> ids = IdsOf(outcome);
    EXPECT_EQ(ids.size(), static_cast<size_t>(kItems - id - 1));
    EXPECT_EQ(ids.count(std::to_string(id)), 0u);
  }
}

TEST_F(Shards, AnAnswerShowsOneVersionOfAllShards) {
  CreateThings();
  std::atomic<bool> ended = false;
  std::atomic<int> batches = 0;
  const std::jthread writer([&] {
    const AdminClient transport = Connect();
    for (int batch = 1; !ended; ++batch) {
      UpsertBatch(transport, batch);
      ++batches;
    }
  });
  const absl::Cleanup end = [&] { ended = true; };
  ASSERT_TRUE(WaitUntil([&] { return batches > 0; }));
  for (int query = 0; query < 10; ++query) {
    const int before = batches;
    const Outcome outcome = Query(0, {"-k", "1000", "--payloads"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::set<std::string> payloads;
    int found = 0;
    const json answer = outcome.json();
    for (const json& match : answer["matches"]) {
      if (match["id"].get<std::string>()[0] != 'w') continue;
      ++found;
      payloads.insert(match["payload"].dump());
    }
    EXPECT_EQ(found, 10);
    EXPECT_THAT(payloads, ::testing::SizeIs(1));
    EXPECT_TRUE(WaitUntil([&] { return batches > before; })) << "there was no load";
  }
}

TEST_F(Shards, FrozenOrKilledShardIsNamedAndNoAnswerIsPartial) {
  CreateThings();
  const std::string address = shards_["2"]->address();
  EXPECT_EQ(Query(4).exit_code, 0);
  shards_["2"]->program().Signal(SIGSTOP);
  EXPECT_THAT(Query(4, {"--deadline", "3"}).err,
              AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("shard 2 of 2 (" + address + ")")));
  shards_["2"]->program().Signal(SIGCONT);
  const std::vector<std::string> failures = FailuresDuring([&](auto wait) {
    Kill("2");
    wait();
    StartShard("2", address);
    EXPECT_TRUE(WaitUntil([&] { return Query(4).exit_code == 0; }));
    wait();
  });
  EXPECT_THAT(failures, ::testing::Not(IsEmpty()));
  for (const std::string& failure : failures) {
    EXPECT_THAT(failure, HasSubstr("UNAVAILABLE"));
    EXPECT_THAT(failure, HasSubstr(absl::StrCat("shard 2 of 2 (", address, ")")));
  }
}

TEST_F(Shards, KilledFrontGivesNoPartialAnswer) {
  CreateThings();
  const std::vector<std::string> failures = FailuresDuring([&](auto wait) {
    const std::string address = daemon_->address();
    daemon_->program().Signal(SIGKILL);
    daemon_->program().Wait();
    wait();
    daemon_ = StartFront("front", {}, address);
    EXPECT_TRUE(WaitUntil([&] { return Query(4).exit_code == 0; }));
    wait();
  });
  for (const std::string& failure : failures) EXPECT_THAT(failure, HasSubstr("UNAVAILABLE"));
}

// The connections of a frozen one stay open, and gRPC takes 20 s to find out that nobody answers.
TEST_F(Shards, FrozenOrKilledReplicaFailsNoSearchAndDelaysNoneByTenSeconds) {
  CreateThings();
  const std::vector<std::string> failures = FailuresDuring([&](auto wait) {
    for (const char* name : {"1", "1-replica"}) {
      const std::string address = shards_[name]->address();
      shards_[name]->program().Signal(SIGSTOP);
      wait();
      shards_[name]->program().Signal(SIGCONT);
      Kill(name);
      wait();
      StartShard(name, address);
      // It is asked only when its turn comes: it must have its rows by then.
      EXPECT_TRUE(WaitUntil([&] { return Query(4, {}, address).exit_code == 0; }));
      wait();
    }
  });
  EXPECT_THAT(failures, IsEmpty());
  EXPECT_LT(longest_, absl::Seconds(10));
}

TEST_F(Shards, AFrontMustNameAllShardsInOrder) {
  CreateThings();
  const std::string first = shards_["1"]->address(), second = shards_["2"]->address();
  const std::map<std::string, std::string> refused = {
      {first + "," + second + "," + first, "but is asked as shard "},
      {second + "," + first, "but is asked as shard "},
      {first + "|" + second + "," + second, "shard 1 of 2 (" + second + ")"},
      {first + "," + daemon_->address(), "this daemon is no shard, but is asked as shard 2/2"}};
  for (const auto& [shards, reason] : refused) {
    const auto front = Start("wrong", "127.0.0.1:0", {"--shards", shards});
    EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(front->program().err(), reason); }));
    EXPECT_FALSE(IsServing(*front));
    if (!absl::StrContains(shards, "|")) {
      EXPECT_THAT(Query(0, {}, front->address()).err, HasSubstr(reason));
    }
  }
}

// One self-signed certificate of all daemons is the least that TLS takes.
TEST_F(Shards, ShardsAcceptFrontsAloneWhichShowRenewedCertificates) {
  for (const char* name : {"first", "second"}) const Daemon made(folder_ / name);
  const auto install = [&](const std::string& from) {
    for (const char* file : {"server.crt", "server.key"}) {
      std::filesystem::copy_file(folder_ / (from + "/tls/" + file), folder_ / file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  };
  install("first");
  const Command tls = {"--tls-cert",           folder_ / "server.crt", "--tls-key",
                       folder_ / "server.key", "--postgres-file",      conninfo_file_};
  const auto start = [&](const std::string& number, const std::string& listen) {
    return std::make_unique<Daemon>(
        folder_ / ("tls" + number),
        Join(tls, {"--client-ca", folder_ / "server.crt", "--shard", number + "/2"}), listen);
  };
  std::unique_ptr<Daemon> one = start("1", "127.0.0.1:0");
  const std::unique_ptr<Daemon> two = start("2", "127.0.0.1:0");
  Daemon front(folder_ / "tls-front",
               Join(tls, {"--shards", one->address() + "," + two->address()}));
  CreateThings();  // through the other front
  user_.flags = {"--server",          front.address(), "--trust",
                 front.fingerprint(), "--key-file",    front.admin_key()};
  const auto finds_all = [&] { return IdsOf(Query(0, {"-k", "1000"})).size() == kItems; };
  EXPECT_TRUE(WaitUntil(finds_all));
  user_.flags[1] = one->address();
  EXPECT_THAT(Query(0).err, HasSubstr("UNAVAILABLE"));
  ConnectionOptions options;
  options.server = front.address();
  options.trust_fingerprint = front.fingerprint();
  options.key_file = front.admin_key();
  const AdminClient transport = *AdminClient::Create(options);  // keeps its connection
  EXPECT_THAT(transport.ListCollections(), IsOk());
  install("second");
  for (Daemon* daemon : {one.get(), two.get(), &front}) {
    daemon->program().Signal(SIGHUP);
    EXPECT_TRUE(WaitUntil(
        [&] { return absl::StrContains(daemon->program().err(), "certificates changed"); }));
  }
  const std::string address = one->address();
  one.reset();
  one = start("1", address);
  EXPECT_TRUE(WaitUntil([&] { return transport.ListCollections().ok(); }, std::chrono::minutes(1)));
}

TEST_F(Shards, HealthFollowsThoseOfTheShards) {
  CreateThings();
  EXPECT_TRUE(WaitUntil([&] { return IsServing(*daemon_); }));
  EXPECT_FALSE(IsServing(*daemon_, "things"));
  Build();
  EXPECT_TRUE(IsServing(*daemon_, "things"));
  Kill("1");  // it has a replica
  const std::string address = shards_["2"]->address();
  Kill("2");
  EXPECT_TRUE(WaitUntil([&] { return !IsServing(*daemon_); }));
  EXPECT_FALSE(IsServing(*daemon_, "things"));
  // A row that cannot be loaded keeps the shard out of service.
  const std::string change = "UPDATE privatemail.items SET features = ";
  PostgresServer::Ask(conninfo_, change + "features || '\\x00'");
  StartShard("2", address);
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(shards_["2"]->program().err(), "its rows cannot be loaded");
  }));
  EXPECT_FALSE(IsServing(*shards_["2"]));
  EXPECT_FALSE(IsServing(*daemon_));
  PostgresServer::Ask(conninfo_, change + "substring(features, 1, length(features) - 1)");
  EXPECT_TRUE(WaitUntil([&] { return IsServing(*daemon_); }));
  EXPECT_TRUE(IsServing(*shards_["2"]));
}

// The steps of docs/operations.md: new shards load, a new front builds, clients switch to it, the
// old daemons leave. Replicas of either number are killed.
TEST_F(Shards, GrowFromTwoToFourWithoutALossOrAFailedSearch) {
  constexpr int kSearchers = 8;  // half of them by joint
  CreateThings();
  Build();
  Build();  // a second version, which open sessions have seen
  StartShard("2-replica", "127.0.0.1:0");
  const auto pair = [&](const std::string& name) {
    return absl::StrCat(shards_[name]->address(), "|", shards_[name + "-replica"]->address());
  };
  daemon_ = Start("front2", "127.0.0.1:0", {"--shards", pair("1") + "," + pair("2")});
  std::unique_ptr<Daemon> grown;
  std::atomic<const Daemon*> front = daemon_.get();
  std::atomic<bool> ended = false;
  std::array<std::atomic<int>, kSearchers + 1> calls = {};  // that ended, of each caller
  std::mutex mutex;
  std::vector<std::string> failures;
  const auto record = [&](const std::string& failure) {
    const std::lock_guard<std::mutex> guard(mutex);
    failures.push_back(failure);
  };
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < kSearchers / 2; ++caller) {
    callers.emplace_back([&, caller] {
      while (!ended) {
        const Outcome found = Query(caller, {"-k", "1000"}, front.load()->address());
        ++calls[caller];
        const std::set<std::string> ids = IdsOf(found);
        int of_gallery = 0;
        for (int id = 0; id < kItems; ++id) of_gallery += ids.count(std::to_string(id));
        if (of_gallery != kItems)
          record(found.exit_code == 0 ? "partial: " + found.out : found.err);
      }
    });
    callers.emplace_back([&, caller] {
      const auto things = ConnectTo(*front.load()).GetCollection("things");
      if (!things.ok()) return record(things.status().ToString());
      v1::RetrieveRequest request = RandomSearch(*things);
      request.set_k(1000);
      request.set_embedding_version(things->embedding_version());  // also of the new shards
      while (!ended) {
        const auto answer = ConnectTo(*front.load()).Retrieve(request);
        ++calls[kSearchers / 2 + caller];
        if (!answer.ok()) {
          record(answer.status().ToString());
        } else if (answer->slots_size() != kClasses || answer->slots(0).matches_size() < kItems) {
          record("partial: " + answer->ShortDebugString());
        }
      }
    });
  }
  Writer writer("w", "things", 7);
  callers.emplace_back([&] {
    for (; !ended; ++calls[kSearchers]) {
      const absl::Status written = writer.Write(ConnectTo(*front.load()), 1);
      if (!written.ok()) return record(written.ToString());
    }
  });
  const auto wait = [&] {
    for (std::atomic<int>& of_caller : calls) {
      const int before = of_caller;
      EXPECT_TRUE(WaitUntil([&] { return of_caller >= before + 2; }));
    }
  };
  wait();
  std::vector<std::string> pairs;
  for (int number = 1; number <= 4; ++number) {
    const std::string name = absl::StrCat(number, "of4");
    StartShard(name, "127.0.0.1:0", 4);
    StartShard(name + "-replica", "127.0.0.1:0", 4);
    pairs.push_back(pair(name));
  }
  Kill("1");
  grown = Start("front4", "127.0.0.1:0", {"--shards", absl::StrJoin(pairs, ",")});
  EXPECT_TRUE(WaitUntil([&] { return IsServing(*grown); }));
  Kill("2of4-replica");
  EXPECT_THAT(ConnectTo(*grown).BuildEmbedding(
                  "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true),
              IsOk());
  EXPECT_TRUE(IsServing(*grown, "things"));
  wait();
  front = grown.get();
  wait();                              // nobody calls the old front any more
  daemon_->program().Signal(SIGTERM);  // ends its calls first
  EXPECT_EQ(daemon_->program().Wait().exit_code, 0);
  for (const char* name : {"1-replica", "2", "2-replica"}) {
    shards_[name]->program().Signal(SIGTERM);
    EXPECT_EQ(shards_[name]->program().Wait().exit_code, 0);
  }
  wait();
  Kill("3of4");
  wait();
  ended = true;
  callers.clear();
  EXPECT_THAT(failures, IsEmpty());
  const auto stored = StoredItems(ConnectTo(*grown), "things");
  ASSERT_THAT(stored, IsOk());
  EXPECT_THAT(writer.Check(*stored), IsEmpty());
  std::set<std::string> ids;
  for (const auto& [id, item] : *stored) ids.insert(id);
  EXPECT_EQ(IdsOf(Query(4, {"-k", "1000"}, grown->address())), ids);
}

TEST_F(Shards, JointAnswersHaveTheNearestOfAllShards) {
  CreateThings();
  Build();
  const auto things = Connect().GetCollection("things");
  ASSERT_THAT(things, IsOk());
  EXPECT_EQ(things->embedded_items(), static_cast<uint64_t>(kItems));
  v1::RetrieveRequest request = RandomSearch(*things);
  request.set_k(kItems);
  const auto answer = Connect().Retrieve(request);
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->slots_size(), kClasses);
  for (const v1::SlotMatches& slot : answer->slots()) {
    std::set<std::string> ids;
    double last = 0;
    for (const v1::Match& match : slot.matches()) {
      ids.insert(match.id());
      EXPECT_GE(match.squared_distance(), last);
      last = match.squared_distance();
    }
    EXPECT_EQ(ids.size(), static_cast<size_t>(kItems));
  }
  // A search by the scheme itself: the items of the target's class come first.
  Grant(100, .01);
  const json found =
      Answer({"query", "things", "--scheme", "joint", "--vectors", Vectors("queries"), "--row", "2",
              "--label", "2", "--epsilon", "50", "--delta", "1e-6", "-k", "8"});
  ASSERT_EQ(found["matches"].size(), 8u);
  for (const json& match : found["matches"]) EXPECT_EQ(match["label"], 2);
}

// Ten builds, each after a change of payloads, and deletions, while both schemes search.
TEST_F(Shards, JointAndCellsAnswerFromOneBuild) {
  v1::CreateCollectionRequest created = NewThings();
  created.add_cells(3);
  created.set_cell_code(v1::CELL_CODE_FLOAT16);
  ASSERT_THAT(Connect().CreateCollection(created), IsOk());
  Fill();
  const AdminClient transport = Connect();
  int batch = 0;
  const auto build = [&] {
    UpsertBatch(transport, ++batch);
    Build();
  };
  build();
  const v1::GetCollectionResponse things = *transport.GetCollection("things");
  v1::RetrieveRequest joint = RandomSearch(things);
  joint.set_k(1000);
  joint.set_with_payloads(true);
  v1::RetrieveCellsRequest cells;
  cells.set_collection("things");
  cells.set_fingerprint(things.fingerprint());
  cells.add_cells(0);
  cells.set_epsilon(1);
  cells.set_items(1000);
  cells.set_with_payloads(true);
  // The payload of all ten items of the batch.
  using Payload = std::pair<std::string, std::string>;
  std::atomic<int> deleted = 0;  // items before this number
  const auto one_of = [](const std::vector<Payload>& found, int deleted_before) {
    std::multiset<std::string> payloads;
    for (const auto& [id, payload] : found) {
      if (id[0] == 'w') {
        payloads.insert(payload);
      } else {
        EXPECT_GE(std::stoi(id), deleted_before);
      }
    }
    EXPECT_EQ(payloads.size(), 10u);
    EXPECT_EQ(payloads.count(*payloads.begin()), 10u);
    return *payloads.begin();
  };
  const auto search_jointly = [&] {
    const int deleted_before = deleted;
    const auto answer = transport.Retrieve(joint);
    EXPECT_THAT(answer, IsOk());
    std::vector<Payload> found;
    for (const v1::Match& match : answer->slots(0).matches()) {
      found.emplace_back(match.id(), match.payload());
    }
    return one_of(found, deleted_before);
  };
  const auto retrieve = [&] {
    return transport.RetrieveCells(
        cells, [] { return [](const auto& /*list*/) { return absl::OkStatus(); }; });
  };
  const auto list_cell = [&] {
    const int deleted_before = deleted;
    const auto lists = retrieve();
    EXPECT_THAT(lists, IsOk());
    std::vector<Payload> found;
    for (const v1::RetrieveCellsResponse& list : *lists) {
      for (int i = 0; i < list.ids_size(); ++i) found.emplace_back(list.ids(i), list.payloads(i));
    }
    return one_of(found, deleted_before);
  };
  ASSERT_TRUE(WaitUntil([&] { return retrieve().ok(); }));
  std::array<std::atomic<int>, 2> answers = {};
  std::atomic<bool> ended = false;
  std::jthread joint_searcher([&] {
    for (; !ended; ++answers[0]) search_jointly();
  });
  std::jthread cells_searcher([&] {
    for (; !ended; ++answers[1]) list_cell();
  });
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) build();
    v1::DeleteItemsRequest request;
    request.set_collection("things");
    request.add_ids(std::to_string(i));
    EXPECT_THAT(transport.DeleteItems(request), IsOk());
    deleted = i + 1;
    search_jointly();
    list_cell();
  }
  EXPECT_TRUE(WaitUntil([&] { return list_cell() == std::to_string(batch); }));
  for (const auto& count : answers) EXPECT_GT(count, 10);
  ended = true;
}

TEST_F(Shards, ABuildThatEndsWithAShardLeavesAllEmbeddings) {
  CreateThings();
  Build();
  const auto before = Connect().GetCollection("things");
  const auto prepared = [&](const std::string& count) {
    return WaitUntil([&] {
      return PostgresServer::Ask(
                 conninfo_, "SELECT count(*) FROM privatemail_shard_1_of_2.prepared_embeddings") ==
             count;
    });
  };
  const auto build = [&] {
    return Connect()
        .BuildEmbedding(
            "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true)
        .status();
  };
  ASSERT_TRUE(prepared("0"));
  shards_["2"]->program().Signal(SIGSTOP);
  const auto fail_to_build = [&] { EXPECT_EQ(build().code(), absl::StatusCode::kUnavailable); };
  const auto key = [&] {
    return PostgresServer::Ask(conninfo_,
                               "SELECT key FROM privatemail_shard_1_of_2.prepared_embeddings");
  };
  std::thread first(fail_to_build);
  EXPECT_TRUE(prepared("1"));
  const std::string of_first = key();
  Kill("1");  // its replica builds nothing
  first.join();
  EXPECT_EQ(key(), of_first);
  std::thread builder(fail_to_build);
  EXPECT_TRUE(WaitUntil([&] { return key() != of_first; }));
  const std::string address = shards_["2"]->address();
  Kill("2");
  builder.join();
  StartShard("2", address);
  v1::RetrieveRequest request = RandomSearch(*before);
  request.set_k(1000);
  EXPECT_TRUE(WaitUntil([&] { return Connect().Retrieve(request).ok(); }));
  EXPECT_EQ(Connect().Retrieve(request)->embedding_version(), before->embedding_version());
  EXPECT_TRUE(WaitUntil([&] { return build().ok(); }));
  EXPECT_GT(Connect().Retrieve(request)->embedding_version(), before->embedding_version());
  EXPECT_TRUE(prepared("0"));
}

TEST_F(Shards, AFrontBuildsAfterChanges) {
  CreateThings();
  Build();
  const auto before = Connect().GetCollection("things");
  const auto front = StartFront("builder", {"--auto-build-share", ".1"});
  for (int batch = 0; batch < 3; ++batch) UpsertBatch(Connect(), batch);
  EXPECT_TRUE(WaitUntil([&] {
    return Connect().GetCollection("things")->embedding_version() > before->embedding_version();
  }));
  EXPECT_EQ(Connect().GetCollection("things")->embedded_items(), kItems + 10u);
}

TEST_F(Shards, OnlyFrontsBuildAndOnlyWithTheBalancedGraph) {
  v1::CreateCollectionRequest things = NewThings();
  things.mutable_settings()->set_label_graph(v1::LABEL_GRAPH_DISTANCE);
  ASSERT_THAT(Connect().CreateCollection(things), IsOk());
  Fill();
  EXPECT_THAT(Connect().BuildEmbedding("things", [](const auto& /*progress*/) {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "balanced by class"));
  ASSERT_THAT(Connect().DeleteCollection("things"), IsOk());
  CreateThings();
  EXPECT_THAT(ConnectTo(*shards_["2"]).BuildEmbedding("things", [](const auto& /*progress*/) {}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "start the build at a front"));
}

// With lists of all items both find the nearest of all.
TEST_F(Shards, CellsHaveTheItemsOfAllShards) {
  v1::CreateCollectionRequest things = NewThings();
  things.add_cells(3);
  things.set_cell_code(v1::CELL_CODE_FLOAT16);
  things.set_publish_quality(true);  // which `build --wait` does not wait for
  ASSERT_THAT(Connect().CreateCollection(things), IsOk());
  Fill();
  Grant(1000, .01);
  const std::unique_ptr<Daemon> whole = Start("whole", "127.0.0.1:0", {});
  std::map<std::string, std::vector<std::set<std::string>>> found;  // by server, of each query
  for (const Daemon* server : {daemon_.get(), whole.get()}) {
    user_.flags[1] = server->address();
    Answer({"build", "things", "--wait"});
    for (int row = 0; row < 5; ++row) {
      const json answer = Answer({"query", "things", "--scheme", "cells", "--vectors",
                                  Vectors("queries"), "--row", std::to_string(row), "--epsilon",
                                  "50", "--items", std::to_string(kItems), "-k", "8", "--yes"});
      std::set<std::string>& ids = found[server->address()].emplace_back();
      for (const json& match : answer["matches"]) ids.insert(match["id"]);
      EXPECT_EQ(ids.size(), 8u);
    }
  }
  EXPECT_EQ(found[daemon_->address()], found[whole->address()]);
}

// The only item lies in one of the shards.
TEST_F(Shards, AShardWithoutItemsIsBuiltAndAnswersWithNothing) {
  v1::CreateCollectionRequest things = NewThings();
  things.set_with_encrypted(true);
  things.add_cells(3);
  things.set_cell_code(v1::CELL_CODE_FLOAT16);
  ASSERT_THAT(Connect().CreateCollection(things), IsOk());
  Write("one", SeparatedClasses(1, 5));
  Ingest("one");
  Answer({"build", "things", "--wait"});
  EXPECT_EQ(Connect().GetCollection("things")->embedded_items(), 1u);
  Grant(1000, .01);
  for (const Command& scheme : {Command{"encrypted"},
                                {"joint", "--label", "0", "--epsilon", "50", "--delta", "1e-6"},
                                {"cells", "--epsilon", "50", "--items", "8", "--yes"}}) {
    json answer = Answer(Join(
        {"query", "things", "--vectors", Vectors("queries"), "--row", "0", "-k", "8", "--scheme"},
        scheme));
    ASSERT_EQ(answer["matches"].size(), 1u) << scheme[0] << answer;
    EXPECT_EQ(answer["matches"][0]["label"], 0);
  }
}

}  // namespace
}  // namespace privatemail::e2e

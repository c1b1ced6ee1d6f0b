// A collection in two shards, one of them with a replica, behind a front: its answers are those of
// one daemon, and never partial.
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kCallers = 3;
// Two answers for one item differ by at most twice the proven error of scores (PRIVACY.md section
// 9, delta up to the 64 dimensions) and by the rounding of both to four digits.
constexpr double kTie = 2 * 7.0e-4 + 1e-4;

class Shards : public Service {
 protected:
  void SetUp() override {
    conninfo_file_ = folder_.Write("conninfo", server_.NewDatabase() + "\n");
    ::chmod(conninfo_file_.c_str(), 0600);
    for (const char* name : {"1", "1-replica", "2"}) StartShard(name, "127.0.0.1:0");
    daemon_ = Start(
        "front", "127.0.0.1:0",
        {"--shards", absl::StrCat(shards_["1"]->address(), "|", shards_["1-replica"]->address(),
                                  ", ", shards_["2"]->address())});
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
  void StartShard(const std::string& name, const std::string& listen) {
    shards_[name].reset();
    shards_[name] = Start(name, listen, {"--shard", absl::StrCat(name.substr(0, 1), "/2")});
  }
  void Kill(const std::string& name) {
    shards_[name]->program().Signal(SIGKILL);
    shards_[name]->program().Wait();
  }

  void CreateThings() {
    v1::CreateCollectionRequest things = NewThings();
    things.set_with_encrypted(true);
    ASSERT_THAT(Connect().CreateCollection(things), IsOk());
    Fill();
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
          const Outcome outcome = Query(caller, {"-k", "1000"});
          ++answers;
          if (outcome.exit_code == 0 && IdsOf(outcome).size() == kItems) continue;
          const std::lock_guard<std::mutex> guard(mutex);
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
  std::string conninfo_file_;
  std::map<std::string, std::unique_ptr<Daemon>> shards_;
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

// Every batch gives the same payload to the same items, which lie in both shards.
TEST_F(Shards, AnAnswerShowsOneVersionOfAllShards) {
  CreateThings();
  const Labelled rows = SeparatedClasses(10, 4);
  std::atomic<bool> ended = false;
  std::atomic<int> batches = 0;
  const std::jthread writer([&] {
    const AdminClient transport = Connect();
    for (int batch = 1; !ended; ++batch) {
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

TEST_F(Shards, KilledShardIsNamedAndNoAnswerIsPartial) {
  CreateThings();
  const std::string address = shards_["2"]->address();
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

TEST_F(Shards, KilledReplicaFailsNoSearch) {
  CreateThings();
  const std::vector<std::string> failures = FailuresDuring([&](auto wait) {
    for (const char* name : {"1", "1-replica"}) {
      const std::string address = shards_[name]->address();
      Kill(name);
      wait();
      StartShard(name, address);
      // It is asked only when its turn comes: it must have its rows by then.
      EXPECT_TRUE(WaitUntil([&] { return Query(4, {}, shards_[name]->address()).exit_code == 0; }));
      wait();
    }
  });
  EXPECT_THAT(failures, IsEmpty());
}

// One self-signed certificate of all daemons is the least that TLS takes.
TEST_F(Shards, ShardsAcceptFrontsAlone) {
  { const Daemon first(folder_ / "first"); }  // makes the certificate
  const std::string certificate = folder_ / "first/tls/server.crt";
  const Command tls = {"--tls-cert",      certificate,
                       "--tls-key",       folder_ / "first/tls/server.key",
                       "--postgres-file", conninfo_file_};
  std::vector<std::unique_ptr<Daemon>> shards;
  for (const char* shard : {"1/2", "2/2"}) {
    shards.push_back(
        std::make_unique<Daemon>(folder_ / absl::StrCat("tls", shards.size()),
                                 Join(tls, {"--client-ca", certificate, "--shard", shard})));
    ASSERT_TRUE(shards.back()->listening()) << shards.back()->program().Wait().err;
  }
  const Daemon front(folder_ / "tls-front",
                     Join(tls, {"--shards", shards[0]->address() + "," + shards[1]->address()}));
  ASSERT_TRUE(front.listening());
  CreateThings();  // through the other front
  user_.flags = {"--server",          front.address(), "--trust",
                 front.fingerprint(), "--key-file",    front.admin_key()};
  const Outcome answer = Query(0, {"-k", "1000"});
  EXPECT_EQ(IdsOf(answer).size(), static_cast<size_t>(kItems)) << answer.err;
  user_.flags[1] = shards[0]->address();
  EXPECT_THAT(Query(0).err, HasSubstr("UNAVAILABLE"));
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

// With lists of all items both find the nearest of all.
TEST_F(Shards, CellsHaveTheItemsOfAllShards) {
  v1::CreateCollectionRequest things = NewThings();
  things.add_cells(3);
  things.set_cell_code(v1::CELL_CODE_FLOAT16);
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

}  // namespace
}  // namespace privatemail::e2e

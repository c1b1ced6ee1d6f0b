// Encrypted searches of restored collections, and of daemons that share a store. kill_test.cc kills
// a daemon.
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;

using Ids = std::set<std::string>;

class EncryptedStore : public Service {
 protected:
  void SetUp() override { Write("queries", SeparatedClasses(3, 3)); }

  // All ids that a search finds; empty while rows are loaded.
  Ids Found(const std::string& collection = "things") const {
    const Outcome outcome = Run({"query", collection, "--vectors", Vectors("queries"), "--row", "1",
                                 "-k", "1000", "--json"});
    const json answer = outcome.json();
    Ids ids;
    if (outcome.exit_code != 0) {
      EXPECT_EQ(answer["error"]["code"], "UNAVAILABLE") << outcome.err;
      return ids;
    }
    for (const json& match : answer["matches"]) ids.insert(match["id"]);
    EXPECT_EQ(ids.size(), answer["matches"].size());
    return ids;
  }
};

TEST_F(EncryptedStore, SnapshotRestoresWhatSearchesFind) {
  StartDaemon();
  Answer({"collection", "create", "things"});
  Writer writer("w", "things", 5);
  ASSERT_THAT(writer.Write(Connect(), 6), IsOk());
  const Ids before = Found();
  EXPECT_FALSE(before.empty());
  const std::string file = folder_ / "things.snapshot";
  Answer({"snapshot", "things", "--out", file});
  // The copy has a UUID of its own, while the first exists.
  EXPECT_EQ(Answer({"restore", "copy", "--in", file})["same_digest"], false);
  EXPECT_EQ(Found("copy"), before);
  ASSERT_THAT(writer.Upsert(Connect()), IsOk());
  const std::string gone = *before.begin();
  Answer({"items", "delete", "things", gone});
  EXPECT_EQ(Found().count(gone), 0u);
  EXPECT_EQ(Found("copy"), before);
  Answer({"collection", "delete", "things", "--yes"});
  EXPECT_EQ(Answer({"restore", "things", "--in", file})["same_digest"], true);
  EXPECT_EQ(Found(), before) << "nothing of the collection that had this UUID before";
  Answer({"items", "delete", "things", gone});
  EXPECT_EQ(Found().count(gone), 0u);
}

class EncryptedSharedStore : public EncryptedStore {
 protected:
  std::unique_ptr<Daemon> Start(const std::string& data) {
    auto daemon = std::make_unique<Daemon>(
        folder_ / data, std::vector<std::string>{"--insecure", "--store", "postgres",
                                                 "--postgres-file", conninfo_file_});
    EXPECT_TRUE(daemon->listening()) << daemon->program().Wait().err;
    return daemon;
  }
  void Use(const Daemon& daemon) { user_.flags = {"--server", daemon.address(), "--insecure"}; }

  PostgresServer server_;
  std::string conninfo_file_;
};

TEST_F(EncryptedSharedStore, DaemonsAgreeOnWritesOfEither) {
  conninfo_file_ = folder_.Write("conninfo", server_.NewDatabase() + "\n");
  ::chmod(conninfo_file_.c_str(), 0600);
  const std::unique_ptr<Daemon> other = Start("other");
  daemon_ = Start("data");
  Use(*daemon_);
  Answer({"collection", "create", "things"});
  Writer writer("w", "things", 7);
  // A daemon follows the other within a second, but this machine may be busy: the time is printed.
  const auto expect_agreement = [&](const std::string& step) {
    SCOPED_TRACE(step);
    const auto start = std::chrono::steady_clock::now();
    Use(*daemon_);
    const Ids own = Found();
    Use(*other);
    Ids seen;
    EXPECT_TRUE(WaitUntil([&] { return (seen = Found()) == own; }))
        << ::testing::PrintToString(seen) << " instead of " << ::testing::PrintToString(own);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%s: agreed after %.2f s, with two commands\n", step.c_str(), taken.count());
    Use(*daemon_);
  };
  ASSERT_THAT(writer.Write(Connect(), 5), IsOk());
  const Ids first = Found();
  ASSERT_GT(first.size(), 2u);
  expect_agreement("first items, which fix the dimension");
  Answer({"items", "delete", "things", *first.begin()});
  EXPECT_EQ(Found().count(*first.begin()), 0u);
  expect_agreement("deletion");
  Use(*other);
  Answer({"items", "delete", "things", *first.rbegin()});
  EXPECT_EQ(Found().count(*first.rbegin()), 0u) << "through the daemon that deleted it, at once";
  Use(*daemon_);
  EXPECT_TRUE(WaitUntil([&] { return Found().count(*first.rbegin()) == 0; }));
  expect_agreement("deletion through the other");
  // A restored collection has the UUID of the deleted one.
  const std::string file = folder_ / "things.snapshot";
  const Ids saved = Found();
  Answer({"snapshot", "things", "--out", file});
  ASSERT_THAT(writer.Upsert(Connect()), IsOk());
  Answer({"collection", "delete", "things", "--yes"});
  Answer({"restore", "things", "--in", file});
  EXPECT_EQ(Found(), saved);
  Use(*other);
  EXPECT_TRUE(WaitUntil([&] { return Found() == saved; }));
}

}  // namespace
}  // namespace privatemail::e2e

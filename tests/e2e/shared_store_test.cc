// Two daemons on one PostgreSQL database.
#include <sys/stat.h>

#include <csignal>
#include <set>

#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::SizeIs;

class SharedStore : public Service {
 protected:
  void SetUp() override {
    conninfo_file_ = folder_.Write("conninfo", server_.NewDatabase() + "\n");
    ::chmod(conninfo_file_.c_str(), 0600);
    other_ = Start("other");
    daemon_ = Start("data");
    Use(*daemon_);
  }

  std::unique_ptr<Daemon> Start(const std::string& data) {
    auto daemon = std::make_unique<Daemon>(
        folder_ / data, std::vector<std::string>{"--insecure", "--postgres-file", conninfo_file_});
    EXPECT_TRUE(daemon->listening()) << daemon->program().Wait().err;
    return daemon;
  }

  void Use(const Daemon& daemon) { user_.flags = {"--server", daemon.address(), "--insecure"}; }

  // A daemon follows changes of the other asynchronously.
  void WaitFor(const std::string& field, const json& value) const {
    json seen;
    ASSERT_TRUE(WaitUntil([&] {
      seen = Run({"collection", "info", "things", "--json"}).json();
      return seen.is_object() && seen.contains(field) && seen[field] == value;
    })) << field
        << " is not " << value << " but " << seen;
  }

  Command Query(int k) const {
    return {"query", "things", "--vectors",       Vectors("queries"), "--row", "2",       "--label",
            "2",     "-k",     std::to_string(k), "--epsilon",        "5",     "--delta", "1e-3"};
  }

  PostgresServer server_;
  std::string conninfo_file_;
  std::unique_ptr<Daemon> other_;
};

TEST_F(SharedStore, OtherDaemonAdoptsChanges) {
  CreateCollection();
  Fill();
  Build();
  Grant(100, .1);
  Write("queries", SeparatedClasses(10, 3));
  const std::string digest = Info()["digest"];

  Use(*other_);
  WaitFor("version", 1);
  EXPECT_EQ(Info()["digest"], digest);
  EXPECT_EQ(Info()["items"], kItems);
  const json answer = Answer(Query(8));
  ASSERT_THAT(answer["matches"], SizeIs(8));
  int of_class = 0;
  for (const json& match : answer["matches"]) of_class += match["label"] == 2 ? 1 : 0;
  EXPECT_GE(of_class, 6);

  // Deleted through the first, not found through the second.
  const std::string id = answer["matches"][0]["id"];
  Use(*daemon_);
  EXPECT_EQ(Answer({"items", "delete", "things", id})["deleted"], 1);
  Use(*other_);
  WaitFor("embedded", kItems - 1);
  for (const json& match : Answer(Query(kItems))["matches"]) EXPECT_NE(match["id"], id);

  // The first dies; the second goes on and builds the next version.
  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
  EXPECT_EQ(Answer({"build", "things"})["version"], 2);
  EXPECT_EQ(Info()["embedded"], kItems - 1);
  daemon_ = Start("data");
  Use(*daemon_);
  EXPECT_EQ(Info()["version"], 2);
}

// As with cells and releases, but encrypted searches read rows that each daemon follows by itself.
TEST_F(SharedStore, EncryptedSearchesFindWritesOfTheOtherDaemon) {
  Write("queries", SeparatedClasses(3, 3));
  Answer({"collection", "create", "things"});
  const auto found = [&](const Daemon& daemon) {
    Use(daemon);
    const Outcome outcome = Run(
        {"query", "things", "--vectors", Vectors("queries"), "--row", "1", "-k", "1000", "--json"});
    json answer = outcome.json();
    std::set<std::string> ids;  // none while rows are loaded
    for (const json& match : answer["matches"]) ids.insert(match["id"]);
    return ids;
  };
  Use(*daemon_);
  ASSERT_THAT(Writer("w", "things", 7).Write(Connect(), 5), IsOk());
  const std::set<std::string> first = found(*daemon_);
  ASSERT_GT(first.size(), 2u);
  EXPECT_TRUE(WaitUntil([&] { return found(*other_) == first; }));
  Answer({"items", "delete", "things", *first.begin()});  // through the other
  EXPECT_EQ(found(*other_).count(*first.begin()), 0u);
  EXPECT_TRUE(WaitUntil([&] { return found(*daemon_).count(*first.begin()) == 0; }));
}

}  // namespace
}  // namespace privatemail::e2e

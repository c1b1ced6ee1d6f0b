// Two daemons on one PostgreSQL database.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "common/base/files.h"
#include "tests/e2e/service.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
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
        folder_ / data, std::vector<std::string>{"--insecure", "--store", "postgres",
                                                 "--postgres-file", conninfo_file_});
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

  // Fills a collection with cells, and grants a budget for it.
  void CreateCellCollection() {
    Write("anchors", SeparatedClasses(kClasses * kAnchorsPerClass, 1));
    Write("gallery", SeparatedClasses(kItems, 2));
    Answer({"collection", "create", "things", "--anchors", Vectors("anchors"), "--anchor-labels",
            Labels("anchors"), "--cells", "5", "--cell-code", "float16"});
    Ingest("gallery");
    Grant(1000, .1);
  }

  // For item 17. At this epsilon the best cell is left out with a probability below 10^-15.
  Command NearestQuery() const {
    return {"query", "things",    "--vectors", Vectors("gallery"), "--scheme", "cells", "--row",
            "17",    "--epsilon", "40",        "--items",          "80"};
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

TEST_F(SharedStore, KillWhileCellsAreStoredLeavesNone) {
  other_.reset();
  CreateCellCollection();
  // Storing takes until the daemon is killed.
  const std::string conninfo = ReadFile("--", conninfo_file_).value();
  const auto ask = [&](const std::string& sql) { return PostgresServer::Ask(conninfo, sql); };
  ask("CREATE FUNCTION privatemail.wait() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'; CREATE TRIGGER wait AFTER INSERT ON "
      "privatemail.cell_parts FOR EACH ROW EXECUTE FUNCTION privatemail.wait()");
  Build();
  const std::string storing =
      " FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'INSERT INTO cell_parts%'";
  ASSERT_TRUE(WaitUntil([&] { return ask("SELECT count(*)" + storing) == "1"; }));
  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
  ask("SELECT pg_terminate_backend(pid)" + storing);
  ask("DROP TRIGGER wait ON privatemail.cell_parts");
  EXPECT_EQ(ask("SELECT count(*) FROM privatemail.cell_parts"), "0");
  for (int start = 0; start < 2; ++start) {
    daemon_ = Start("data");
    Use(*daemon_);
    WaitFor("cells_ready", true);
    EXPECT_EQ(Answer(NearestQuery())["matches"][0]["id"], "17");
    ASSERT_TRUE(
        WaitUntil([&] { return ask("SELECT count(*) FROM privatemail.cell_parts") == "1"; }));
    daemon_->program().Signal(SIGTERM);
    EXPECT_EQ(daemon_->program().Wait().err.find("is replaced"), std::string::npos);
  }
}

TEST_F(SharedStore, OtherDaemonAdoptsCells) {
  CreateCellCollection();
  Build();
  const auto nearest = [&] { return Answer(NearestQuery())["matches"][0]["id"]; };
  for (const Daemon* daemon : {daemon_.get(), other_.get()}) {
    Use(*daemon);
    WaitFor("cells_ready", true);
    EXPECT_EQ(nearest(), "17") << daemon->address();
  }
  // Deleted through one, gone from the other's cells; built by one, new in the other's.
  Use(*daemon_);
  Answer({"items", "delete", "things", "17"});
  Use(*other_);
  WaitFor("cells_state", "ready: " + std::to_string(kItems - 1) + " items");
  EXPECT_NE(nearest(), "17");
  Use(*daemon_);
  Ingest("gallery");
  Build();
  Use(*other_);
  WaitFor("cells_state", "ready: " + std::to_string(kItems) + " items");
  EXPECT_EQ(nearest(), "17");
}

TEST_F(SharedStore, OutageRefusesChangesNamingTheStore) {
  CreateCollection();
  server_.Kill();
  const Outcome refused = Run({"items", "delete", "things", "1", "--json"});
  EXPECT_EQ(refused.json()["error"]["code"], "UNAVAILABLE");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("error: the store is unavailable: database test1 at "),
                                 Not(HasSubstr("is privatemaild running"))));
  daemon_->program().Signal(SIGTERM);
  const Outcome ended = daemon_->program().Wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("changes of other daemons cannot be followed"));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(PostgresServer::kPassword)));
}

// PostgresConnection.ErrorsOmitPassword tries more.
TEST_F(SharedStore, UnreachableStoreStopsStartWithoutShowingPassword) {
  Daemon daemon(
      folder_ / "third",
      {"--insecure", "--store", "postgres", "--postgres-file",
       folder_.Write("bad", "host=127.0.0.1 port=1 user=me password=hush-hush dbname=d")});
  EXPECT_FALSE(daemon.listening());
  const Outcome ended = daemon.program().Wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.err, HasSubstr("the store is unavailable: database d at 127.0.0.1:1"));
  EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("hush-hush")));
  const Daemon same(folder_ / "data",
                    {"--insecure", "--store", "postgres", "--postgres-file", conninfo_file_});
  EXPECT_FALSE(same.listening()) << "a data directory is one daemon's";
}

// Two stores in one directory would share keys, audit log and certificates.
TEST_F(SharedStore, SecondDaemonOnDataDirectoryIsRefused) {
  const std::string data = folder_ / "data";
  for (const Command& store :
       {Command{}, {"--store", "postgres", "--postgres-file", conninfo_file_}}) {
    Daemon second(data, Join({"--insecure"}, store));
    EXPECT_FALSE(second.listening());
    const Outcome ended = second.program().Wait();
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_THAT(ended.err,
                HasSubstr("data directory " + data + " is locked by another daemon (pid " +
                          std::to_string(daemon_->program().pid()) + ")"));
  }
  EXPECT_FALSE(std::filesystem::exists(data + "/privatemail.sqlite"));
  CreateCollection();
}

}  // namespace
}  // namespace privatemail::e2e

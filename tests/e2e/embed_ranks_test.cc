// privatemaild-embed under mpirun on a PostgreSQL server.
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "privatemail/admin_client.h"
#include "server/engine/embed.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/e2e/programs.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace privatemail::testing;  // NOLINT: the small collection
using namespace server;                // NOLINT: the store

using Clock = std::chrono::steady_clock;

constexpr int kItems = 4001;  // with 12 anchors 16 blocks, the last of 173 rows
constexpr int kManySteps = 10000;

// Ids ascend with rows.
std::vector<Item> Items(int count) {
  std::vector<Item> items = MakeItems(count, 1);
  for (int i = 0; i < count; ++i) {
    items[i].id = absl::StrFormat("item-%06d", i);
    items[i].payload = absl::StrCat(i);
  }
  return items;
}

// mpirun needs flags to run as root and with more ranks than cores.
Command Mpirun(int ranks, const Command& flags) {
  Command command = {MPIRUN, "--oversubscribe", "-n", std::to_string(ranks), PRIVATEMAILD_EMBED};
  if (::geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
  return Join(command, flags);
}

class EmbedRanks : public ::testing::Test {
 protected:
  EmbedRanks() {
    // On a busy machine 17 ranks may take longer to start than the default of 5 s.
    conninfo_file_ =
        folder_.Write("conninfo", conninfo_ + " connect_timeout=120 application_name=ranks\n");
    ::chmod(conninfo_file_.c_str(), 0600);
    store_ = *PostgresStore::Open(conninfo_);
  }

  // By default a collection whose kernel a polynomial approximates.
  StoredCollection Make(const std::string& name, int items, int steps = 3,
                        double kernel_bandwidth = 6) {
    StoredCollection collection = SmallCollection(name);
    collection.parameters.settings.kernel_bandwidth = kernel_bandwidth;
    collection.parameters.settings.steps = steps;
    EXPECT_THAT(store_->Create(collection), IsOk());
    EXPECT_THAT(store_->Upsert(collection.parameters, Items(items)), IsOk());
    return collection;
  }

  Command Embed(const std::string& name, int ranks) const {
    return Mpirun(ranks, {"--collection", name, "--postgres-file", conninfo_file_, "--data-dir",
                          folder_.path()});
  }

  // Returns the process ids of the ranks that mpirun has started.
  static std::vector<pid_t> Children(pid_t parent) {
    std::ifstream list(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
    std::vector<pid_t> children;
    for (pid_t one = 0; list >> one;) children.push_back(one);
    return children;
  }

  void ExpectRefused(const Command& command, const std::string& part) const {
    const Outcome outcome = Program(command).Wait();
    EXPECT_EQ(outcome.exit_code, 1) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("privatemaild-embed: rank 0 of "), HasSubstr(part)));
    EXPECT_THAT(outcome.err, Not(HasSubstr(PostgresServer::kPassword)));
  }

  PostgresServer server_;
  const TemporaryFolder folder_;
  const std::string conninfo_ = server_.NewDatabase();
  std::string conninfo_file_;
  std::unique_ptr<PostgresStore> store_;
};

TEST_F(EmbedRanks, AnyNumberOfRanksGivesTheSameBitsWhichARunningDaemonLoads) {
  const StoredCollection things = Make("things", kItems);
  const auto gallery = store_->LoadGallery(things.parameters);
  ASSERT_THAT(gallery, IsOk());
  const auto expected = server::Embed(things.parameters, things.anchors, *gallery, nullptr);
  ASSERT_THAT(expected, IsOk());
  ASSERT_THAT(expected->plan, HasSubstr("factored"));
  Daemon daemon(folder_ / "data", {"--insecure", "--postgres-file", conninfo_file_});
  ASSERT_TRUE(daemon.listening()) << daemon.program().Wait().err;
  ConnectionOptions connection;
  connection.server = daemon.address();
  connection.insecure = true;
  const AdminClient transport = *AdminClient::Create(connection);
  // The daemon's own configuration file.
  const std::string config = folder_.Write(
      "privatemaild.toml", absl::StrCat("postgres_file = \"", conninfo_file_, "\"\ndata_dir = \"",
                                        folder_ / "data", "\"\n"));
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        Program(ranks == 2 ? Mpirun(2, {"--collection", "things", "--config", config})
                           : Embed("things", ranks))
            .Wait();
    ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("step 3 of 3\n"),
                                   HasSubstr(absl::StrCat("embedded things: version ", ranks, ", ",
                                                          kItems, " items, ", ranks, " ranks"))));
    const auto saved = store_->LoadEmbedding(things.parameters);
    ASSERT_TRUE(saved.ok() && saved->has_value()) << saved.status();
    const Embedding& embedding = **saved;
    EXPECT_EQ(embedding.items_version, static_cast<uint64_t>(kItems));
    EXPECT_EQ(embedding.coordinates, expected->coordinates) << ranks;
    EXPECT_EQ(embedding.anchor_coordinates, expected->anchor_coordinates) << ranks;
    EXPECT_EQ(embedding.objective, expected->objective) << ranks;
    EXPECT_EQ(embedding.ids, expected->ids);
    EXPECT_EQ(embedding.labels, expected->labels);
    EXPECT_EQ(embedding.payloads, expected->payloads);
  }
  EXPECT_TRUE(
      WaitUntil([&] { return transport.GetCollection("things")->embedding_version() == 3; }));
}

// Shared memory that a process has mapped.
std::set<std::string> SharedMemory(pid_t process) {
  std::ifstream maps(absl::StrCat("/proc/", process, "/maps"));
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    if (const size_t at = line.find("/dev/shm/"); at != std::string::npos) {
      files.insert(line.substr(at));
    }
  }
  return files;
}

// Gone, or waiting to be reaped.
bool HasEnded(pid_t process) {
  std::ifstream stat(absl::StrCat("/proc/", process, "/stat"));
  std::string id, name, state;
  stat >> id >> name >> state;
  return state.empty() || state == "Z";
}

// A job of two ranks in its steps, over a collection with an earlier embedding.
class FailingRank : public EmbedRanks {
 protected:
  FailingRank() {
    former_.items_version = kItems;
    EXPECT_THAT(store_->SaveEmbedding(things_.parameters, former_), IsOk());
    EXPECT_TRUE(std::filesystem::create_directory(scratch_));
    Command command = Mpirun(
        2, {"--collection", "things", "--postgres-file", conninfo_file_, "--data-dir", scratch_});
    command.insert(command.begin() + 1, {"--mca", "orte_tmpdir_base", scratch_});
    job_.emplace(command);
    EXPECT_EQ(job_->ReadLine(), "step 1 of 10000");
    ranks_ = Children(job_->pid());
    EXPECT_THAT(ranks_, SizeIs(2));
    for (const pid_t rank : ranks_) shared_.merge(SharedMemory(rank));
  }

  // Waits for the end of the job, and checks that nothing of it is left.
  void ExpectEnd(const ::testing::Matcher<const std::string&>& message,
                 Clock::time_point failed = Clock::now()) {
    const Outcome outcome = job_->Wait();
    EXPECT_LT(Clock::now() - failed, std::chrono::seconds(30));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, message);
    EXPECT_THAT(outcome.out, Not(HasSubstr("embedded things")));
    for (const pid_t rank : ranks_) EXPECT_TRUE(WaitUntil([&] { return HasEnded(rank); })) << rank;
    for (const std::string& file : shared_) EXPECT_FALSE(std::filesystem::exists(file)) << file;
    EXPECT_TRUE(WaitUntil([&] { return Sessions() == "0"; })) << Sessions();
    EXPECT_TRUE(std::filesystem::is_empty(scratch_));
    EXPECT_EQ(PostgresServer::Ask(conninfo_, "SELECT count(*) FROM privatemail.embedded_items"),
              "3");
    const auto saved = store_->LoadEmbedding(things_.parameters);
    ASSERT_TRUE(saved.ok() && saved->has_value());
    EXPECT_EQ((*saved)->version, 1u);
    EXPECT_EQ((*saved)->coordinates, former_.coordinates);
  }

  std::string Sessions() const {
    return PostgresServer::Ask(
        conninfo_, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ranks'");
  }

  const StoredCollection things_ = Make("things", kItems, kManySteps);
  Embedding former_ = SomeEmbedding(3);
  const std::string scratch_ = folder_ / "scratch";
  std::optional<Program> job_;
  std::vector<pid_t> ranks_;
  std::set<std::string> shared_;
};

TEST_F(FailingRank, KilledRankEndsTheJob) {
  ::kill(ranks_[1], SIGKILL);
  ExpectEnd(AllOf(HasSubstr("process rank 1 with"), HasSubstr("exited on signal 9")));
}

TEST_F(FailingRank, StoppedFirstRankEndsTheJob) {
  ::kill(ranks_[0], SIGSTOP);
  ExpectEnd(HasSubstr("privatemaild-embed: rank 0 of 2 has stalled: rank 1 expected"));
}

// All threads of a rank but the one that sends heartbeats.
TEST_F(FailingRank, HangingRankEndsTheJob) {
  const Clock::time_point failed = Clock::now();
  std::vector<pid_t> stopped;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", ranks_[1], "/task"))) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "watchdog") continue;
    stopped.push_back(std::stoi(task.path().filename()));
    ASSERT_EQ(::ptrace(PTRACE_SEIZE, stopped.back(), nullptr, nullptr), 0) << std::strerror(errno);
    ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, stopped.back(), nullptr, nullptr), 0);
  }
  // The kernel reports their end to this thread, in any order, before mpirun learns of it.
  const auto has_ended = [](pid_t thread) {
    int status = 0;
    const pid_t changed = ::waitpid(thread, &status, __WALL | WNOHANG);
    return changed < 0 || (changed == thread && (WIFEXITED(status) || WIFSIGNALED(status)));
  };
  EXPECT_TRUE(WaitUntil([&] { return std::erase_if(stopped, has_ended), stopped.empty(); }));
  ExpectEnd(HasSubstr("privatemaild-embed: rank 1 of 2 has stalled: it should have finished"),
            failed);
}

// Runs a tenth of the time for longer than a stalled rank is waited for.
TEST_F(FailingRank, SlowRankIsWaitedFor) {
  for (const auto start = Clock::now(); Clock::now() - start < std::chrono::seconds(25);) {
    ::kill(ranks_[1], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(2700));
    ::kill(ranks_[1], SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_THAT(job_->err(), IsEmpty());
  EXPECT_FALSE(HasEnded(ranks_[0]));
  ::kill(ranks_[1], SIGKILL);
  ExpectEnd(HasSubstr("exited on signal 9"));
}

TEST_F(EmbedRanks, DeletedCollectionEndsTheRanks) {
  const StoredCollection things = Make("things", 10 * kItems, kManySteps);
  Program ranks(Embed("things", 2));
  ASSERT_EQ(ranks.ReadLine(), "step 1 of 10000");
  ASSERT_THAT(store_->Delete(things.parameters.collection_uuid), IsOk());
  const Outcome outcome = ranks.Wait();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("collection things was deleted while it was being embedded"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("step 9999")));
}

TEST_F(EmbedRanks, UnusableInputIsRefused) {
  Make("narrow", kItems, 3, .1);
  Make("things", kItems);
  ExpectRefused(Embed("absent", 2), "collection absent does not exist in this PostgreSQL database");
  ExpectRefused(Embed("narrow", 2), "expected a plan with a polynomial, got tiled: the exponent");
  ExpectRefused(Embed("things", 17), "mpirun -n must be at most 16 for 4013 rows, but is 17");
  ExpectRefused(Mpirun(2, {"--collection", "things", "--data-dir", folder_.path()}),
                "must be in PostgreSQL");
  ExpectRefused(Mpirun(2, {"--collection", "things", "--postgres-file", conninfo_file_,
                           "--data-dir", folder_ / "none"}),
                "cannot create a file for the features of a build in");
  server_.Kill();
  ExpectRefused(Embed("things", 2), "the store is unavailable");
}

}  // namespace
}  // namespace privatemail::e2e

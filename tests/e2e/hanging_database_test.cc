// A database that hangs: its processes are stopped, so that it accepts connections and answers
// nothing.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

class HangingDatabase : public Service {
 protected:
  void SetUp() override {
    const std::string conninfo = folder_.Write("conninfo", server_.NewDatabase() + "\n");
    ::chmod(conninfo.c_str(), 0600);
    daemon_ = std::make_unique<Daemon>(
        folder_ / "data", Command{"--insecure", "--postgres-file", conninfo, "--drain-seconds", "1",
                                  "--max-concurrent", "16"});
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
    user_.flags = {"--server", daemon_->address(), "--insecure"};
    CreateCollection();
    Fill();
    Build();
    ASSERT_THAT(Search(), IsOk());
  }

  ~HangingDatabase() override {
    server_.Resume();
    for (std::thread& writer : writers_) writer.join();
  }

  // Deletes an item that does not exist, which needs the store.
  absl::Status Write(absl::Duration deadline) const {
    ConnectionOptions options = Options();
    options.deadline = deadline;
    v1::DeleteItemsRequest request;
    request.set_collection("things");
    request.add_ids("no such item");
    return AdminClient::Create(options)->DeleteItems(request).status();
  }

  // Each waits on a connection of its own, for longer than the test.
  void StartWriters(int count) {
    for (int i = 0; i < count; ++i) {
      writers_.emplace_back([this] {
        ++begun_;
        Write(absl::Minutes(3)).IgnoreError();
      });
    }
    ASSERT_TRUE(WaitUntil([&] { return begun_ == count; }));
  }

  PostgresServer server_;
  std::vector<std::thread> writers_;
  std::atomic<int> begun_ = 0;
};

TEST_F(HangingDatabase, SearchesAreAnsweredBesideWaitingWriters) {
  server_.Suspend();
  StartWriters(60);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(Search(), IsOk());
}

TEST_F(HangingDatabase, DaemonEndsWithinDrainTime) {
  server_.Suspend();
  StartWriters(8);
  const auto start = steady_clock::now();
  daemon_->program().Signal(SIGTERM);
  EXPECT_EQ(daemon_->program().Wait().exit_code, 0);
  EXPECT_LT(steady_clock::now() - start, seconds(1 + 2));
}

// Pool and places would otherwise be taken for minutes.
TEST_F(HangingDatabase, CancelledWritersLeaveTheirPlaces) {
  server_.Suspend();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Write(absl::Milliseconds(300)).ok());
  server_.Resume();
  EXPECT_THAT(Write(absl::Seconds(30)), IsOk());
}

}  // namespace
}  // namespace privatemail::e2e

// Two daemons on one PostgreSQL database: a rolling restart fails no request of a client that is
// given both.
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

constexpr int kCallers = 4;
constexpr int kRounds = 2;
// Downtime of a daemon, during which clients try to reach it.
constexpr absl::Duration kDowntime = absl::Seconds(1);
// Pause between two restarts. Clients retry a lost address within a second.
constexpr absl::Duration kPause = absl::Seconds(2);

class TwoDaemons : public Service {
 protected:
  void SetUp() override {
    conninfo_file_ = folder_.Write("conninfo", server_.NewDatabase() + "\n");
    ::chmod(conninfo_file_.c_str(), 0600);
    Start(0, "127.0.0.1:0");
    // Both daemons need the same keys and certificate.
    for (const char* part : {"tls", "keys", "admin.key"}) {
      std::filesystem::create_directories(folder_ / "1");
      std::filesystem::copy(folder_ / "0" + "/" + part, folder_ / "1" + "/" + part,
                            std::filesystem::copy_options::recursive);
    }
    ::chmod((folder_ / "1").c_str(), 0700);
    const std::string port = daemons_[0]->address().substr(daemons_[0]->address().rfind(':'));
    Start(1, "127.0.0.2" + port);
    both_ = absl::StrCat("ipv4:127.0.0.1", port, ",127.0.0.2", port);
    ASSERT_EQ(daemons_[0]->fingerprint(), daemons_[1]->fingerprint());
  }

  void Start(int which, const std::string& listen) {
    const std::string data = folder_ / std::to_string(which);
    daemons_[which].reset();
    daemons_[which] = std::make_unique<Daemon>(
        data, std::vector<std::string>{"--postgres-file", conninfo_file_}, listen);
    ASSERT_TRUE(daemons_[which]->listening()) << daemons_[which]->program().Wait().err;
  }

  AdminClient Connect(const std::string& server) const {
    ConnectionOptions options;
    options.server = server;
    options.trust_fingerprint = daemons_[0]->fingerprint();
    options.key_file = folder_ / "0/admin.key";
    return *AdminClient::Create(options);
  }

  // Builds the collection "things" through one daemon; both load it.
  void Fill() {
    const AdminClient transport = Connect(daemons_[0]->address());
    ASSERT_THAT(transport.CreateCollection(NewThings()), IsOk());
    Service::Fill(transport);
    ASSERT_THAT(transport.BuildEmbedding("things", [](const auto& /*progress*/) {}), IsOk());
    WaitUntilReady(0);
    WaitUntilReady(1);
  }

  void WaitUntilReady(int which) const {
    const AdminClient transport = Connect(daemons_[which]->address());
    ASSERT_TRUE(WaitUntil([&] { return transport.IsServing("things").value_or(false); }));
  }

  // Makes read-only calls of every kind until ended_.
  void Call(const AdminClient& transport) {
    const auto things = transport.GetCollection("things");
    Count(things.status());
    if (!things.ok()) return;
    v1::RetrieveRequest request = RandomSearch(*things);
    request.set_k(3);
    request.set_embedding_version(things->embedding_version());
    for (int call = 0; !ended_; ++call) {
      const auto answer = transport.Retrieve(request);
      Count(answer.status());
      if (answer.ok() && answer->slots_size() != kClasses) Count(absl::DataLossError("slots"));
      if (call % 8 != 0) continue;
      Count(transport.GetCollection("things").status());
      Count(transport.GetAnchors("things", things->fingerprint()).status());
      Count(transport.ListCollections().status());
      Count(transport.IsServing("things").status());
    }
  }

  void Count(const absl::Status& status) {
    ++calls_;
    if (status.ok()) return;
    const std::lock_guard<std::mutex> guard(mutex_);
    failures_.push_back(status.ToString());
  }

  // Answered searches in a daemon's audit log.
  int AnsweredBy(int which) const {
    std::ifstream log(folder_ / absl::StrCat(which, "/audit.jsonl"));
    int answered = 0;
    for (std::string line; std::getline(log, line);) {
      answered += absl::StrContains(line, "\"Retrieve\"") && absl::StrContains(line, "\"OK\"");
    }
    return answered;
  }

  PostgresServer server_;
  std::string conninfo_file_;
  std::unique_ptr<Daemon> daemons_[2];
  std::string both_;  // addresses
  std::atomic<bool> ended_ = false;
  std::atomic<int> calls_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

TEST_F(TwoDaemons, RollingRestartFailsNoRequest) {
  Fill();
  const AdminClient transport = Connect(both_);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back([&] { Call(transport); });
  for (int round = 0; round < kRounds; ++round) {
    for (const int which : {0, 1}) {
      const int before = calls_;
      daemons_[which]->program().Signal(SIGTERM);
      EXPECT_EQ(daemons_[which]->program().Wait().exit_code, 0);
      absl::SleepFor(kDowntime);  // a setting of the test
      Start(which, daemons_[which]->address());
      WaitUntilReady(which);
      absl::SleepFor(kPause);  // a setting of the test
      EXPECT_GT(calls_ - before, 10) << "there was no load";
    }
  }
  ended_ = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(failures_, ::testing::IsEmpty()) << "of " << calls_ << " calls";
  // Both daemons served.
  const int answered[] = {AnsweredBy(0), AnsweredBy(1)};
  EXPECT_GT(answered[0], calls_ / 10);
  EXPECT_GT(answered[1], calls_ / 10);
}

}  // namespace
}  // namespace privatemail::e2e

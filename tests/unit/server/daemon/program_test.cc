// privatemaild: output, signals and audit events.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/e2e/programs.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/daemon/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using e2e::Outcome;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// privatemaild on `data` in a folder.
class RunningDaemon : public e2e::Daemon {
 public:
  explicit RunningDaemon(const TemporaryFolder& folder, const e2e::Command& flags = {},
                         const std::string& listen = "127.0.0.1:0")
      : Daemon(folder / "data", flags, listen) {
    EXPECT_TRUE(listening()) << program().Wait().err;
  }

  bool WaitUntilLogged(const std::string& text) {
    return WaitUntil([&] { return absl::StrContains(program().err(), text); });
  }

  Outcome StopWith(int signal = SIGTERM) {
    program().Signal(signal);
    const Outcome outcome = program().Wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
};

std::vector<std::string> EventsIn(const std::string& audit_log) {
  std::vector<std::string> events;
  std::istringstream lines(Contents(audit_log));
  for (std::string line; std::getline(lines, line);) {
    events.push_back(nlohmann::json::parse(line).value("event", "none"));
  }
  return events;
}

TEST(Privatemaild, PrintsTrustInstructionsAndStopsOnSignal) {
  const TemporaryFolder directory;
  for (const int signal : {SIGTERM, SIGINT}) {
    const Outcome ended = RunningDaemon(directory).StopWith(signal);
    ASSERT_OK_AND_ASSIGN(const auto identity, LoadOrCreateIdentity(directory / "data/tls"));
    EXPECT_THAT(
        ended.out,
        AllOf(HasSubstr(
                  absl::StrCat("\ntrust this server with: --trust ", identity.fingerprint, "\n")),
              HasSubstr(absl::StrCat("\nor with: --ca ", directory / "data/tls/server.crt", "\n")),
              HasSubstr(absl::StrCat("\nadmin key, made ",
                                     signal == SIGTERM ? "now" : "by the first start", ": ",
                                     directory / "data/admin.key", "\n")),
              ContainsRegex("\nlistening on 127.0.0.1:[1-9][0-9]*\n")));
    EXPECT_THAT(ended.err, HasSubstr("INFO stopped\n"));
  }
}

// To every thread but the first, as the kernel may do: libraries may start threads before main
// blocks the signals.
TEST(Privatemaild, SignalToOtherThreadIsForwarded) {
  const TemporaryFolder directory;
  RunningDaemon daemon(directory);
  const pid_t process = daemon.program().pid();
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", process, "/task"))) {
    const pid_t thread = std::stoi(task.path().filename());
    if (thread != process) ::syscall(SYS_tgkill, process, thread, SIGHUP);
  }
  EXPECT_THAT(daemon.StopWith().err, HasSubstr("INFO stopped\n"));
}

// Runs without the right to read every process, which root has.
e2e::Command Unprivileged(const e2e::Command& command) {
  if (::geteuid() != 0) return command;
  return e2e::Join({"/usr/bin/setpriv", "--bounding-set", "-sys_ptrace"}, command);
}

bool IsReadableByUser(const e2e::Program& program) {
  const std::string executable = absl::StrCat("/proc/", program.pid(), "/exe");
  return e2e::Program(Unprivileged({"/usr/bin/readlink", executable})).Wait().exit_code == 0;
}

bool CanDumpCore(const e2e::Program& program) {
  const std::string limits = Contents(absl::StrCat("/proc/", program.pid(), "/limits"));
  return IsReadableByUser(program) ||
         !absl::StrContains(limits, "\nMax core file size        0                    0      ");
}

// Without systemd's LimitCORE as well.
TEST(Programs, MemoryIsInNoCoreDump) {
  const TemporaryFolder directory;
  const e2e::Program control(Unprivileged({"/usr/bin/sleep", "60"}));
  EXPECT_TRUE(WaitUntil([&] { return IsReadableByUser(control); }));
  e2e::Program daemon(Unprivileged(
      {PRIVATEMAILD, "--data-dir", directory / "data", "--listen", "127.0.0.1:0", "--insecure"}));
  std::string address;
  while (address.empty()) {
    const auto line = daemon.ReadLine();
    ASSERT_TRUE(line.has_value()) << daemon.err();
    if (absl::StartsWith(*line, "listening on ")) address = line->substr(13);
  }
  EXPECT_FALSE(CanDumpCore(daemon));
  daemon.Signal(SIGSTOP);  // the client waits for its answer
  const e2e::Program client(
      Unprivileged({PRIVATEMAIL, "health", "--insecure", "--server", address, "--deadline", "60"}));
  EXPECT_TRUE(WaitUntil([&] { return !CanDumpCore(client); }));
  daemon.Signal(SIGCONT);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 0) << daemon.err();
}

// Log rotation must work even if the configuration is wrong.
TEST(Privatemaild, SighupReloadsConfigurationAndReopensLogInAnyCase) {
  const TemporaryFolder directory;
  const std::string config = directory.Write("d.toml", "max_k = 7\n");
  RunningDaemon daemon(directory, {"--config", config});
  directory.Write("d.toml", "max_k = 8\n");
  daemon.program().Signal(SIGHUP);
  EXPECT_TRUE(daemon.WaitUntilLogged("reload: max_k is now 8, was 7\n"));
  EXPECT_TRUE(daemon.WaitUntilLogged("reload: audit log reopened\n"));
  directory.Write("d.toml", "max_k = \n");
  const std::string audit = directory / "data/audit.jsonl";
  std::filesystem::rename(audit, audit + ".1");
  daemon.program().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(audit); }));
  EXPECT_THAT(daemon.StopWith().err,
              ContainsRegex("ERROR reload: [^\n]*d.toml line 1: this is no TOML[^\n]*; "
                            "all settings stay as they were, keys, certificates and "
                            "audit log are read again\n"
                            "[^\n]*INFO reload: keys read\n"));
  EXPECT_THAT(EventsIn(audit), ElementsAre("reload", "stop"));
}

TEST(Privatemaild, FailedListenCreatesNothing) {
  const TemporaryFolder directory;
  const TemporaryFolder elsewhere;
  RunningDaemon running(elsewhere, {"--insecure"});
  const std::string taken = running.address();
  struct Start {
    std::string listen;
    e2e::Command flags;
    int exit_code;
    std::string message;
  };
  for (const Start& start :
       {Start{taken, {}, 1, "in use; --listen takes another address"},
        {"nowhere.invalid:1", {}, 1, "--listen takes another address"},
        {"127.0.0.1:0", {"--http", taken}, 1, "in use; --http takes another"},
        {"127.0.0.1:0", {"--http-listen", taken}, 1, "in use; --http-listen takes another"},
        {"127.0.0.1:0", {"--http", "localhost:9464"}, 2, "--http must name an IP address"}}) {
    e2e::Daemon daemon(directory / "data", start.flags, start.listen);
    const Outcome ended = daemon.program().Wait();
    EXPECT_EQ(ended.exit_code, start.exit_code) << start.listen;
    EXPECT_THAT(ended.err, HasSubstr(start.message));
    EXPECT_FALSE(std::filesystem::exists(directory / "data")) << start.listen;
  }
}

TEST(Privatemaild, WarnsBeyondLoopbackWithoutProxies) {
  constexpr char kWarning[] = "WARNING listening beyond loopback without trusted_proxies";
  const TemporaryFolder directory;
  EXPECT_THAT(RunningDaemon(directory, {"--log-level", "warning"}, "0.0.0.0:0").StopWith().err,
              AllOf(HasSubstr(kWarning), Not(HasSubstr("INFO"))));
  EXPECT_THAT(
      RunningDaemon(directory, {"--trusted-proxies", "192.0.2.1"}, "0.0.0.0:0").StopWith().err,
      Not(HasSubstr(kWarning)));
}

// protobuf logs texts that are not UTF-8.
TEST(Privatemaild, ProtobufMessagesUseLogFormat) {
  const TemporaryFolder directory;
  RunningDaemon daemon(directory, {"--insecure", "--log-format", "json", "--log-level", "debug"});
  {
    const auto stub = v1::RetrievalService::NewStub(
        grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()));
    v1::GetCollectionRequest request;
    request.set_collection("\xff");
    grpc::ClientContext context;
    v1::GetCollectionResponse response;
    EXPECT_FALSE(stub->GetCollection(&context, request, &response).ok());
  }
  EXPECT_TRUE(daemon.WaitUntilLogged("\"level\":\"DEBUG\",\"text\":\"protobuf: String field"));
  std::istringstream lines(daemon.StopWith().err);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

Outcome RunToEnd(const TemporaryFolder& folder, const e2e::Command& flags) {
  return e2e::Program(e2e::Join({PRIVATEMAILD, "--data-dir", folder / "data"}, flags)).Wait();
}

// settings_test.cc and file_check_test.cc test each problem of the file, of ranges, of pairs and of
// named files.
TEST(Privatemaild, CheckConfigReportsAllProblemsAndDoesNotServe) {
  const TemporaryFolder directory;
  const std::string config = directory.Write("d.toml", "max_k = 7\n");
  const Outcome good = RunToEnd(directory, {"--config", config, "--check-config"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("\nmax_k = 7\n"));
  directory.Write("d.toml",
                  "max_k = 0\ntls_key = 'k'\nclient_ca = '" + (directory / "none") + "'\n");
  std::filesystem::permissions(config, std::filesystem::perms(0666));
  const Outcome bad = RunToEnd(directory, {"--config", config, "--check-config"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err, AllOf(HasSubstr(" WARNING --config " + config + " can be written by"),
                             HasSubstr(" ERROR " + config + " line 1: max_k must be"),
                             HasSubstr(" ERROR --tls-cert and --tls-key must be given"),
                             HasSubstr(" ERROR cannot read --client-ca ")));
  const Outcome flags = RunToEnd(directory, {"--listen", "0.0.0.0:0", "--insecure"});
  EXPECT_EQ(flags.exit_code, 2);
  EXPECT_THAT(flags.err,
              ::testing::MatchesRegex("[-0-9T:.Z]+ ERROR --insecure serves plaintext[^\n]*\n"));
  EXPECT_FALSE(std::filesystem::exists(directory / "data"));
}

}  // namespace
}  // namespace privatemail::testing

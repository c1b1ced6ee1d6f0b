// privatemaild as its operator meets it: what it prints, what signals do.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/unit/server/certificates.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// The program itself, with its output in files.
class Program {
 public:
  Program(const std::string& directory, std::vector<std::string> flags) : directory_(directory) {
    flags.insert(flags.begin(), {PRIVATEMAILD, "--data-dir", directory + "/data"});
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    std::filesystem::remove(directory + "/out");  // what one before it said is not awaited
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open((directory + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      ::dup2(::open((directory + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }

  // One that a failed test has not ended.
  ~Program() {
    if (pid_ > 0) StopWith(SIGKILL);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string out() const { return Contents(directory_ + "/out"); }
  std::string err() const { return Contents(directory_ + "/err"); }

  bool WaitUntilListening() const {
    for (int i = 0; i < 500; ++i) {
      if (absl::StrContains(out(), "listening on ")) return true;
      ::usleep(20000);
    }
    return false;
  }

  bool WaitUntilLogged(const std::string& text) const {
    for (int i = 0; i < 500; ++i) {
      if (absl::StrContains(err(), text)) return true;
      ::usleep(20000);
    }
    return false;
  }

  void Signal(int signal) const { ::kill(pid_, signal); }
  // To every thread but the first, as the kernel may choose one where that is busy.
  void SignalOthers(int signal) const {
    const std::string tasks = absl::StrCat("/proc/", pid_, "/task");
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      const pid_t thread = std::stoi(task.path().filename());
      if (thread != pid_) ::syscall(SYS_tgkill, pid_, thread, signal);
    }
  }
  int StopWith(int signal) {
    Signal(signal);
    return ExitCode();
  }
  int ExitCode() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string directory_;
  pid_t pid_ = 0;
};

std::vector<std::string> EventsIn(const std::string& audit_log) {
  std::vector<std::string> events;
  std::istringstream lines(Contents(audit_log));
  for (std::string line; std::getline(lines, line);) {
    events.push_back(nlohmann::json::parse(line).value("event", "none"));
  }
  return events;
}

TEST(Privatemaild, PrintsHowToTrustItAndEndsWell) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TemporaryFolder directory;
    Program program(directory.path(), {"--listen", "127.0.0.1:0"});
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    EXPECT_EQ(program.StopWith(signal), 0);
    const auto identity = SelfSignedIdentity(directory / "data/tls");
    ASSERT_THAT(identity, IsOk());
    EXPECT_THAT(
        program.out(),
        ::testing::AllOf(::testing::HasSubstr(absl::StrCat("\ntrust this server with: --trust ",
                                                           identity->fingerprint, "\n")),
                         ::testing::HasSubstr(absl::StrCat(
                             "\nor with: --ca ", directory / "data/tls/server.crt", "\n")),
                         ::testing::ContainsRegex("\nlistening on 127.0.0.1:[1-9][0-9]*\n")));
    EXPECT_THAT(program.err(), ::testing::HasSubstr("INFO stopped\n"));
  }
}

// A library may have started a thread before the program could block any signal.
TEST(Privatemaild, OutlivesASignalThatReachesAnotherThread) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  program.SignalOthers(SIGHUP);
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_TRUE(absl::StrContains(program.err(), "INFO stopped\n")) << program.err();
}

TEST(Privatemaild, ReadsItsConfigurationAgainOnSighup) {
  const TemporaryFolder directory;
  const std::string config = directory.Write("d.toml", "max_k = 7\n");
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--config", config});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  directory.Write("d.toml", "max_k = 8\n");
  program.Signal(SIGHUP);
  EXPECT_TRUE(program.WaitUntilLogged("reload: max_k is now 8, was 7\n")) << program.err();
  EXPECT_TRUE(program.WaitUntilLogged("reload: keys read\n")) << program.err();
  directory.Write("d.toml", "max_k = 0\n");
  program.Signal(SIGHUP);
  EXPECT_TRUE(program.WaitUntilLogged("but is 0; all settings stay as they were")) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
}

// Whoever rotates the log does not know of what is wrong in the configuration.
TEST(Privatemaild, ReopensItsAuditLogAndReadsItsKeysOnSighupWhateverTheConfigurationIs) {
  const TemporaryFolder directory;
  const std::string config = directory.Write("d.toml", "max_k = 7\n");
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--config", config});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  directory.Write("d.toml", "max_k = \n");
  const std::string audit = directory / "data/audit.jsonl";
  std::filesystem::rename(audit, audit + ".1");
  program.Signal(SIGHUP);
  ASSERT_TRUE(program.WaitUntilLogged("reload: audit log reopened\n")) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.err(),
              ::testing::ContainsRegex("ERROR reload: [^\n]*d.toml line 1: this is no TOML[^\n]*; "
                                       "all settings stay as they were, keys, certificates and "
                                       "audit log are read again\n"
                                       "[^\n]*INFO reload: keys read\n"));
  EXPECT_THAT(EventsIn(audit), ::testing::ElementsAre("reload", "stop"));
}

TEST(Privatemaild, SaysWhereTheAdminKeyIsAsLongAsItIsThere) {
  const TemporaryFolder directory;
  for (const char* when : {"now", "by the first start"}) {
    Program program(directory.path(), {"--listen", "127.0.0.1:0"});
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    EXPECT_EQ(program.StopWith(SIGTERM), 0);
    EXPECT_THAT(program.out(),
                ::testing::HasSubstr(absl::StrCat("\nadmin key, made ", when, ": ",
                                                  directory / "data/admin.key", "\n")));
  }
  std::filesystem::remove(directory / "data/admin.key");
  Program program(directory.path(), {"--listen", "127.0.0.1:0"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.out(), ::testing::Not(::testing::HasSubstr("admin key")));
}

TEST(Privatemaild, MakesNothingWhereItCannotListen) {
  const TemporaryFolder directory;
  const TemporaryFolder elsewhere;
  Program running(elsewhere.path(), {"--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(running.WaitUntilListening()) << running.err();
  const std::string line = running.out();
  std::string taken = line.substr(line.rfind("listening on ") + 13);
  taken.pop_back();
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--listen", taken},
           {"--listen", "nowhere.invalid:1"},
           {"--listen", "127.0.0.1:0", "--http", taken},
           {"--listen", "127.0.0.1:0", "--http", "localhost:9464"}}) {
    Program program(directory.path(), flags);
    EXPECT_EQ(program.ExitCode(), 1) << ::testing::PrintToString(flags);
    EXPECT_FALSE(std::filesystem::exists(directory / "data")) << ::testing::PrintToString(flags);
  }
  EXPECT_EQ(running.StopWith(SIGTERM), 0);
}

TEST(Privatemaild, WritesItsStartReloadAndStopToTheAuditLog) {
  const TemporaryFolder directory;
  for (const char* audit_log : {"", "other"}) {
    std::vector<std::string> flags = {"--listen", "127.0.0.1:0"};
    const std::string path = directory / (*audit_log == '\0' ? "data/audit.jsonl" : audit_log);
    if (*audit_log != '\0') flags.insert(flags.end(), {"--audit-log", path});
    Program program(directory.path(), flags);
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    program.Signal(SIGHUP);
    EXPECT_TRUE(program.WaitUntilLogged("audit log reopened")) << program.err();
    EXPECT_EQ(program.StopWith(SIGTERM), 0);
    EXPECT_THAT(EventsIn(path), ::testing::ElementsAre("start", "reload", "stop"));
  }
  Program silent(directory.path(), {"--listen", "127.0.0.1:0", "--audit-log", "off"});
  ASSERT_TRUE(silent.WaitUntilListening()) << silent.err();
  EXPECT_EQ(silent.StopWith(SIGTERM), 0);
  EXPECT_FALSE(std::filesystem::exists("off"));
}

TEST(Privatemaild, KeepsTheAuditLogToTheSizeItIsToldFromItsStartOn) {
  const TemporaryFolder directory;
  directory.Write("data/audit.jsonl", std::string(999, 'x') + "\n");
  for (const char* limit : {"0", "1000"}) {
    Program program(directory.path(), {"--listen", "127.0.0.1:0", "--audit-max-bytes", limit});
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    EXPECT_EQ(program.StopWith(SIGTERM), 0);
    EXPECT_EQ(std::filesystem::exists(directory / "data/audit.jsonl.1"), *limit != '0');
  }
}

TEST(Privatemaild, HelpShowsTheRangeOfEveryNumber) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--help"});
  EXPECT_EQ(program.ExitCode(), 0);
  EXPECT_THAT(program.out(),
              ::testing::AllOf(::testing::HasSubstr("; a number between 0 and 3600\n"),
                               ::testing::HasSubstr("; an integer between 1 and 10000\n")));
}

TEST(Privatemaild, SaysThatTlsIsOff) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.err(), ::testing::HasSubstr("WARNING TLS is off (--insecure)"));
}

TEST(Privatemaild, ChecksItsConfigurationWithoutServing) {
  const TemporaryFolder directory;
  const std::string good = directory.Write("good.toml", "max_k = 7\n");
  Program checked(directory.path(), {"--config", good, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 0) << checked.err();
  EXPECT_THAT(checked.out(), ::testing::HasSubstr("\nmax_k = 7\n"));
  const std::string bad = directory.Write("bad.toml", "\nmax_kk = 7\n");
  Program refused(directory.path(), {"--config", bad, "--check-config"});
  EXPECT_EQ(refused.ExitCode(), 1);
  EXPECT_THAT(refused.err(), ::testing::HasSubstr(bad + " line 2: 'max_kk' is no setting"));
  EXPECT_FALSE(std::filesystem::exists(directory / "data"));
}

TEST(Privatemaild, ChecksWhatItsConfigurationNamesAndSaysAllThatIsWrong) {
  const TemporaryFolder directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  const std::string config =
      directory.Write("d.toml", absl::StrCat("tls_cert = '", directory / "pipe", "'\ntls_key = '",
                                             directory / "none", "'\nclient_ca = '",
                                             directory / "none", "'\nhttp = 'nowhere'\n"));
  std::filesystem::permissions(config, std::filesystem::perms(0666));
  Program checked(directory.path(), {"--config", config, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 1);
  EXPECT_EQ(checked.out(), "");
  const std::string prefix = "[-0-9T:.Z]+ ";
  EXPECT_THAT(checked.err(),
              ::testing::MatchesRegex(absl::StrCat(
                  prefix, "WARNING --config [^\n]*can be written by others[^\n]*\n",   //
                  prefix, "ERROR cannot read --tls-cert [^\n]*regular file[^\n]*\n",   //
                  prefix, "ERROR cannot read --client-ca [^\n]*No such file[^\n]*\n",  //
                  prefix, "ERROR --http must be HOST:PORT[^\n]*\n")));
}

TEST(Privatemaild, ChecksRangesPairsAndFilesInOneGo) {
  const TemporaryFolder directory;
  std::filesystem::permissions(directory.Write("data", ""), std::filesystem::perms(0600));
  const std::string config = directory.Write(
      "d.toml", absl::StrCat("max_k = 0\ntls_key = 'k'\nclient_ca = '", directory / "none",
                             "'\nlisten = 'nowhere'\naudit_log = '", directory.path(), "'\n"));
  Program checked(directory.path(), {"--config", config, "--check-config"});
  EXPECT_EQ(checked.ExitCode(), 1);
  EXPECT_EQ(checked.out(), "");
  const std::string prefix = "[-0-9T:.Z]+ ERROR ";
  const std::string expected = absl::StrCat(
      prefix, "[^\n]*d.toml line 1: max_k must be an integer between 1[^\n]*but is 0\n", prefix,
      "--listen must be HOST:PORT[^\n]*but is 'nowhere'\n", prefix,
      "[^\n]*must be given together, but only --tls-key is\n", prefix,
      "--data-dir [^\n]*/data must be a directory, but is none\n", prefix,
      "cannot read --client-ca [^\n]*No such file[^\n]*\n", prefix,
      "--audit-log [^\n]* must be a file, but is a directory\n");
  EXPECT_THAT(checked.err(), ::testing::MatchesRegex(expected));
}

// A start that waits for a pipe would look like one that takes long.
TEST(Privatemaild, RefusesAConfigurationThatIsNoRegularFile) {
  const TemporaryFolder directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {directory / "pipe", directory.path(), std::string("/dev/zero")}) {
    Program program(directory.path(), {"--config", path});
    EXPECT_EQ(program.ExitCode(), 1);
    EXPECT_THAT(program.err(), ::testing::HasSubstr("cannot read --config " + path));
  }
}

TEST(Privatemaild, LogsLinesOfJsonAndOnlyWhatIsSevereEnough) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--insecure", "--log-format",
                                     "json", "--log-level", "warning"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.err(), ::testing::ContainsRegex(
                                 "^\\{\"time\":\"[^\"]+Z\",\"level\":\"WARNING\",\"text\":\"TLS"));
  EXPECT_THAT(program.err(), ::testing::Not(::testing::HasSubstr("INFO")));
}

// A text that is not UTF-8, of which protobuf has much to say.
TEST(Privatemaild, LogsWhatProtobufHasToSayInItsOwnFormat) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--insecure", "--log-format",
                                     "json", "--log-level", "debug"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  const std::string out = program.out();
  const size_t at = out.find("listening on ") + std::string("listening on ").size();
  const auto stub = v1::RetrievalService::NewStub(grpc::CreateChannel(
      out.substr(at, out.find('\n', at) - at), grpc::InsecureChannelCredentials()));
  v1::GetCollectionRequest request;
  request.set_collection("\xff");
  grpc::ClientContext context;
  v1::GetCollectionResponse response;
  EXPECT_FALSE(stub->GetCollection(&context, request, &response).ok());
  EXPECT_TRUE(program.WaitUntilLogged("\"level\":\"DEBUG\",\"text\":\"protobuf: String field"))
      << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  std::istringstream lines(program.err());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST(Privatemaild, FailsWithOneLineThatSaysWhy) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "0.0.0.0:0", "--insecure"});
  EXPECT_EQ(program.ExitCode(), 1);
  EXPECT_EQ(program.out(), "");
  EXPECT_THAT(program.err(),
              ::testing::MatchesRegex("[-0-9T:.Z]+ ERROR --insecure serves plaintext[^\n]*\n"));
}

}  // namespace
}  // namespace privatemail::testing

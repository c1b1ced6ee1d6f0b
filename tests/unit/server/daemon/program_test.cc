// privatemaild: output, signals and audit events.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "tests/unit/server/daemon/daemon_program.h"

namespace privatemail::testing {
namespace {

std::vector<std::string> EventsIn(const std::string& audit_log) {
  std::vector<std::string> events;
  std::istringstream lines(Contents(audit_log));
  for (std::string line; std::getline(lines, line);) {
    events.push_back(nlohmann::json::parse(line).value("event", "none"));
  }
  return events;
}

TEST(Privatemaild, PrintsTrustInstructionsAndStopsOnSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TemporaryFolder directory;
    Program program(directory.path(), {"--listen", "127.0.0.1:0"});
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    EXPECT_EQ(program.StopWith(signal), 0);
    const auto identity = LoadOrCreateIdentity(directory / "data/tls");
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

// Libraries may start threads before main blocks the signals.
TEST(Privatemaild, SignalToOtherThreadIsForwarded) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  program.SignalOthers(SIGHUP);
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_TRUE(absl::StrContains(program.err(), "INFO stopped\n")) << program.err();
}

TEST(Privatemaild, SighupReloadsConfiguration) {
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

// Log rotation must work even if the configuration is wrong.
TEST(Privatemaild, SighupReopensLogDespiteInvalidConfiguration) {
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

TEST(Privatemaild, AnnouncesExistingAdminKey) {
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

TEST(Privatemaild, FailedListenCreatesNothing) {
  const TemporaryFolder directory;
  const TemporaryFolder elsewhere;
  Program running(elsewhere.path(), {"--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(running.WaitUntilListening()) << running.err();
  const std::string line = running.out();
  std::string taken = line.substr(line.rfind("listening on ") + 13);
  taken.pop_back();
  const std::vector<std::pair<std::vector<std::string>, int>> starts = {
      {{"--listen", taken}, 1},
      {{"--listen", "nowhere.invalid:1"}, 1},
      {{"--listen", "127.0.0.1:0", "--http", taken}, 1},
      {{"--listen", "127.0.0.1:0", "--http", "localhost:9464"}, 2}};
  for (const auto& [flags, code] : starts) {
    Program program(directory.path(), flags);
    EXPECT_EQ(program.ExitCode(), code) << ::testing::PrintToString(flags);
    EXPECT_FALSE(std::filesystem::exists(directory / "data")) << ::testing::PrintToString(flags);
  }
  EXPECT_EQ(running.StopWith(SIGTERM), 0);
}

TEST(Privatemaild, AuditsStartReloadAndStop) {
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

TEST(Privatemaild, RotatesOversizedAuditLogAtStart) {
  const TemporaryFolder directory;
  directory.Write("data/audit.jsonl", std::string(999, 'x') + "\n");
  for (const char* limit : {"0", "1000"}) {
    Program program(directory.path(), {"--listen", "127.0.0.1:0", "--audit-max-bytes", limit});
    ASSERT_TRUE(program.WaitUntilListening()) << program.err();
    EXPECT_EQ(program.StopWith(SIGTERM), 0);
    EXPECT_EQ(std::filesystem::exists(directory / "data/audit.jsonl.1"), *limit != '0');
  }
}

TEST(Privatemaild, InsecureLogsWarning) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.err(), ::testing::HasSubstr("WARNING TLS is off (--insecure)"));
}

TEST(Privatemaild, LogFormatAndLevelApply) {
  const TemporaryFolder directory;
  Program program(directory.path(), {"--listen", "127.0.0.1:0", "--insecure", "--log-format",
                                     "json", "--log-level", "warning"});
  ASSERT_TRUE(program.WaitUntilListening()) << program.err();
  EXPECT_EQ(program.StopWith(SIGTERM), 0);
  EXPECT_THAT(program.err(), ::testing::ContainsRegex(
                                 "^\\{\"time\":\"[^\"]+Z\",\"level\":\"WARNING\",\"text\":\"TLS"));
  EXPECT_THAT(program.err(), ::testing::Not(::testing::HasSubstr("INFO")));
}

// protobuf logs texts that are not UTF-8.
TEST(Privatemaild, ProtobufMessagesUseLogFormat) {
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

}  // namespace
}  // namespace privatemail::testing

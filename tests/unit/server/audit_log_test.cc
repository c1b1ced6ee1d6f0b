#include "server/access/audit_log.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {
namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

AuditEntry Entry(const std::string& collection) {
  AuditEntry entry;
  entry.time = absl::FromUnixMillis(1'700'000'000'123);
  entry.rpc = "Retrieve";
  entry.collection = collection;
  entry.key_id = "0123456789ab";
  entry.key_name = "reader";
  entry.certificate = "member";
  entry.peer = "ipv4:127.0.0.1:1";
  entry.rows = 80;
  entry.request_bytes = 2168;
  entry.code = "OK";
  entry.milliseconds = 1.23456;
  return entry;
}

TEST(AuditLog, WritesOneLineOfJsonACallForItsOwnerAlone) {
  const TemporaryFolder folder;
  const auto log = AuditLog::Open(folder / "audit.jsonl");
  ASSERT_THAT(log, IsOk());
  ASSERT_THAT((*log)->Write(Entry("birds")), IsOk());
  const std::vector<std::string> lines = LinesOf(folder / "audit.jsonl");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            R"({"time":"2023-11-14T22:13:20.123Z","rpc":"Retrieve","collection":"birds",)"
            R"("key":"0123456789ab","key_name":"reader","certificate":"member",)"
            R"("peer":"ipv4:127.0.0.1:1","rows":80,"request_bytes":2168,"code":"OK","ms":1.235})");
  struct stat info = {};
  ASSERT_EQ(::stat((folder / "audit.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(AuditLog, IsNotBrokenByWhatAPeerSends) {
  const TemporaryFolder folder;
  const auto log = AuditLog::Open(folder / "a");
  const std::string evil = "x\"}\n{\"rpc\":\"forged\xff\xc3\xa9\x1b";
  ASSERT_THAT((*log)->Write(Entry(evil)), IsOk());
  const std::vector<std::string> lines = LinesOf(folder / "a");
  ASSERT_EQ(lines.size(), 1u);
  const auto line = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(line["rpc"], "Retrieve");
  EXPECT_EQ(line["collection"], "x\"}\n{\"rpc\":\"forged\xef\xbf\xbd\xc3\xa9\x1b");
}

TEST(AuditLog, AppendsOverRestartsAndFollowsItsNameWhenReopened) {
  const TemporaryFolder folder;
  ASSERT_THAT((*AuditLog::Open(folder / "a"))->Write(Entry("one")), IsOk());
  const auto log = AuditLog::Open(folder / "a");
  ASSERT_THAT((*log)->Write(Entry("two")), IsOk());
  std::filesystem::rename(folder / "a", folder / "a.1");
  ASSERT_THAT((*log)->Write(Entry("three")), IsOk());
  EXPECT_EQ(LinesOf(folder / "a.1").size(), 3u);
  ASSERT_THAT((*log)->Reopen(), IsOk());
  ASSERT_THAT((*log)->Write(Entry("four")), IsOk());
  EXPECT_EQ(LinesOf(folder / "a.1").size(), 3u);
  EXPECT_EQ(LinesOf(folder / "a").size(), 1u);
}

TEST(AuditLog, NamesAFileThatCannotBeOpenedOrWritten) {
  const auto failed = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(AuditLog::Open("/nowhere/a"), FailsWith(failed, "cannot open audit log /nowhere/a"));
  const auto full = AuditLog::Open("/dev/full");
  ASSERT_THAT(full, IsOk());
  EXPECT_THAT((*full)->Write(Entry("x")),
              FailsWith(absl::StatusCode::kUnavailable, "audit log /dev/full"));
}

TEST(AuditLog, LinesOfSeveralThreadsDoNotMix) {
  const TemporaryFolder folder;
  const auto log = AuditLog::Open(folder / "a");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) ASSERT_THAT((*log)->Write(Entry("birds")), IsOk());
      ASSERT_THAT((*log)->Reopen(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = LinesOf(folder / "a");
  EXPECT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) EXPECT_EQ(line, lines[0]);
}

}  // namespace
}  // namespace privatemail::testing

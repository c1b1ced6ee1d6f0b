#include "server/access/audit_log.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/time/time.h"
#include "tests/testing/full_disk.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

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
  entry.subject = "1f0c66a1e1f2";
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

class AuditLogTest : public ::testing::Test {
 protected:
  uintmax_t Size(const std::string& name) const {
    std::error_code none;
    const uintmax_t size = std::filesystem::file_size(folder_ / name, none);
    return none ? 0 : size;
  }

  const TemporaryFolder folder_;
};

TEST_F(AuditLogTest, WritesOneJsonLinePerCall) {
  ASSERT_OK_AND_ASSIGN(const auto log, AuditLog::Open(folder_ / "audit.jsonl", 0));
  ASSERT_THAT(log->Write(Entry("fruit")), IsOk());
  const std::vector<std::string> lines = LinesOf(folder_ / "audit.jsonl");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            R"({"time":"2023-11-14T22:13:20.123Z","rpc":"Retrieve","collection":"fruit",)"
            R"("subject":"1f0c66a1e1f2","key":"0123456789ab","key_name":"reader",)"
            R"("certificate":"member",)"
            R"("peer":"ipv4:127.0.0.1:1","rows":80,"request_bytes":2168,"code":"OK","ms":1.235})");
  EXPECT_EQ(ModeOf(folder_ / "audit.jsonl"), 0600u);
}

TEST_F(AuditLogTest, EscapesTextOfPeers) {
  const auto log = AuditLog::Open(folder_ / "a", 0);
  const std::string evil = "x\"}\n{\"rpc\":\"forged\xff\xc3\xa9\x1b";
  ASSERT_THAT((*log)->Write(Entry(evil)), IsOk());
  const std::vector<std::string> lines = LinesOf(folder_ / "a");
  ASSERT_EQ(lines.size(), 1u);
  const auto line = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(line["rpc"], "Retrieve");
  EXPECT_EQ(line["collection"], "x\"}\n{\"rpc\":\"forged\xef\xbf\xbd\xc3\xa9\x1b");
}

TEST_F(AuditLogTest, AppendsAcrossRestartsAndReopensByName) {
  ASSERT_THAT((*AuditLog::Open(folder_ / "a", 0))->Write(Entry("one")), IsOk());
  const auto log = AuditLog::Open(folder_ / "a", 0);
  std::filesystem::rename(folder_ / "a", folder_ / "a.1");
  ASSERT_THAT((*log)->Write(Entry("two")), IsOk());
  ASSERT_THAT((*log)->Reopen(), IsOk());
  ASSERT_THAT((*log)->Record("reload"), IsOk());
  EXPECT_EQ(LinesOf(folder_ / "a.1").size(), 2u);
  ASSERT_EQ(LinesOf(folder_ / "a").size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(LinesOf(folder_ / "a")[0])["event"], "reload");
}

TEST_F(AuditLogTest, ErrorsNameFile) {
  EXPECT_THAT(AuditLog::Open("/nowhere/a", 0),
              FailsWith(kFailedPrecondition, "cannot open audit log /nowhere/a"));
  const auto full = AuditLog::Open("/dev/full", 0);
  ASSERT_THAT(full, IsOk());
  EXPECT_THAT((*full)->Write(Entry("x")), FailsWith(kUnavailable, "audit log /dev/full"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(AuditLog::Open(folder_ / "pipe", 0),
              FailsWith(kFailedPrecondition, "cannot open audit log"))
      << "blocks if it waits for a reader";
}

TEST_F(AuditLogTest, LineWithoutSpaceIsDroppedAsAWhole) {
  const auto log = AuditLog::Open(folder_ / "a", 0);
  ASSERT_THAT((*log)->Write(Entry("one")), IsOk());
  {
    const FullDisk full(std::filesystem::file_size(folder_ / "a") + 20);
    EXPECT_THAT((*log)->Write(Entry("two")), FailsWith(kUnavailable, "/a"));
  }
  ASSERT_THAT((*log)->Write(Entry("three")), IsOk());
  const std::vector<std::string> lines = LinesOf(folder_ / "a");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["collection"], "three");
}

TEST_F(AuditLogTest, ConcurrentLinesDoNotMix) {
  const auto log = AuditLog::Open(folder_ / "a", 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) ASSERT_THAT((*log)->Write(Entry("fruit")), IsOk());
      ASSERT_THAT((*log)->Reopen(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = LinesOf(folder_ / "a");
  EXPECT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) EXPECT_EQ(line, lines[0]);
}

TEST_F(AuditLogTest, RotationKeepsLatestLines) {
  constexpr uintmax_t kMaxBytes = 2000;
  folder_.Write("a", std::string(5000, 'x') + "\n");  // of a daemon with a larger limit
  const auto log = AuditLog::Open(folder_ / "a", kMaxBytes);
  ASSERT_THAT((*log)->Record("start"), IsOk());
  EXPECT_EQ(Size("a.1"), 5001u);
  for (int i = 0; i < 100; ++i) {
    ASSERT_THAT((*log)->Write(Entry(std::to_string(i))), IsOk());
    EXPECT_LE(Size("a"), kMaxBytes) << i;
  }
  EXPECT_LE(Size("a.1"), kMaxBytes);
  std::vector<std::string> lines = LinesOf(folder_ / "a.1");
  EXPECT_GT(lines.size(), 5u);
  for (const std::string& line : LinesOf(folder_ / "a")) lines.push_back(line);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(nlohmann::json::parse(lines[i])["collection"],
              std::to_string(100 - lines.size() + i));
  }
  EXPECT_EQ(Size("a.2"), 0u);
}

// Two concurrent rotations would lose most lines.
TEST_F(AuditLogTest, LogsOnOneFileShareLimit) {
  const auto calls = AuditLog::Open(folder_ / "a", 2000);
  const auto events = AuditLog::Open(folder_ / "a", 2000);
  for (int i = 0; Size("a.1") == 0; ++i) {
    ASSERT_THAT((*calls)->Write(Entry(std::to_string(i))), IsOk());
  }
  const std::string former = LinesOf(folder_ / "a.1").at(0);
  ASSERT_THAT((*events)->Write(Entry("last")), IsOk());
  EXPECT_EQ(LinesOf(folder_ / "a.1").at(0), former);
  const std::vector<std::string> lines = LinesOf(folder_ / "a");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["collection"], "last");
}

TEST_F(AuditLogTest, FailedRotationStopsGrowth) {
  const auto log = AuditLog::Open(folder_ / "a", 2000);
  std::filesystem::create_directories(folder_ / "a.1/full");
  absl::Status status;
  while (status.ok()) status = (*log)->Write(Entry("fruit"));
  EXPECT_THAT(status, FailsWith(kUnavailable, "audit log " + (folder_ / "a") +
                                                  " has reached 2000 bytes "
                                                  "(audit_max_bytes) and cannot be renamed to " +
                                                  (folder_ / "a.1")));
  const uintmax_t size = Size("a");
  EXPECT_LE(size, 2000u);
  EXPECT_FALSE((*log)->Write(Entry("fruit")).ok());
  EXPECT_EQ(Size("a"), size);
  std::filesystem::remove_all(folder_ / "a.1");
  EXPECT_THAT((*log)->Write(Entry("fruit")), IsOk());
  EXPECT_EQ(Size("a.1"), size);
}

TEST_F(AuditLogTest, DeviceIsNotRotated) {
  const auto log = AuditLog::Open("/dev/null", 1);
  for (int i = 0; i < 3; ++i) EXPECT_THAT((*log)->Write(Entry("fruit")), IsOk());
}

}  // namespace
}  // namespace privatemail::testing

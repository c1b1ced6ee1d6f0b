// Damage to a write-ahead log, in use and after its program was killed.
#include "common/sqlite/wal_mark.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "common/base/operator_only_error.h"
#include "common/sqlite/checksums.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/common/sqlite/table_contents.h"

namespace privatemail::sqlite {
namespace {

// In place: other processes have the file open.
void Overwrite(const std::string& path, size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

// Opens the database like a daemon.
absl::StatusOr<std::unique_ptr<Database>> Start(const std::string& path) {
  if (absl::Status checked = CheckWal(path); !checked.ok()) return checked;
  auto database = Database::Open(path);
  if (!database.ok()) return database;
  (*database)->EnableWalMark();
  if (auto mode = (*database)->Query("PRAGMA journal_mode = WAL"); !mode.ok()) return mode.status();
  if (absl::Status settled = (*database)->CheckpointLog(); !settled.ok()) return settled;
  return database;
}

class Wal : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto database, Start(path_));
    database_ = std::move(database);
    ASSERT_THAT(database_->Execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)"), IsOk());
    for (int row = 0; row < 40; ++row) Put(row, row % 5 == 0 ? 9000 : 100 + row);
    expected_ = *ReadAll(database_.get());
    log_ = Contents(path_ + "-wal");
    ASSERT_GT(log_.size(), 100'000u);
  }

  void Put(int row, int bytes) {
    const std::string blob(static_cast<size_t>(bytes), 'x');
    auto insert = database_->Prepare("INSERT OR REPLACE INTO t VALUES (?1, ?2)");
    ASSERT_THAT(insert->Bind(1, int64_t{row}).BindBlob(2, blob.data(), blob.size()).Run(), IsOk());
  }

  // Copies the files as a kill would leave them, applies `damage` and reads them. Returns whether
  // the damage was detected; otherwise the contents must be unchanged.
  bool DetectsAfterKill(const std::function<void(const std::string&)>& damage) {
    const std::string copy = folder_ / "copy";
    for (const char* suffix : {"", "-wal", "-mark"}) {
      std::filesystem::copy_file(path_ + suffix, copy + suffix,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    std::filesystem::remove(copy + "-shm");
    damage(copy);
    const auto started = Start(copy);
    const absl::StatusOr<std::string> read =
        started.ok() ? ReadAll(started->get()) : absl::StatusOr<std::string>(started.status());
    if (read.ok()) {
      EXPECT_TRUE(*read == expected_) << "something else was read";
      return false;
    }
    EXPECT_THAT(read.status(), FailsWith(kDataLoss, "database file " + copy + "-wal is damaged"));
    EXPECT_TRUE(IsOperatorOnlyError(read.status()));
    return true;
  }

  // Copies the database without its log and its mark, and opens it like a daemon.
  absl::Status StartWithoutLogAndMark() {
    const std::string copy = folder_ / "copy";
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    for (const char* suffix : {"-wal", "-mark", "-shm"}) std::filesystem::remove(copy + suffix);
    return Start(copy).status();
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
  std::unique_ptr<Database> database_;
  std::string expected_;
  std::string log_;
};

TEST_F(Wal, FlippedBitInUseIsDetectedOrHarmless) {
  std::mt19937 random(1);
  int detected = 0;
  for (int round = 0; round < 1000; ++round) {
    const size_t at = random() % log_.size();
    Overwrite(path_ + "-wal", at, static_cast<char>(log_[at] ^ (1 << random() % 8)));
    ASSERT_OK_AND_ASSIGN(const auto reader, Database::OpenReadOnly(path_));
    const absl::StatusOr<std::string> read = ReadAll(reader.get());
    if (read.ok()) {
      ASSERT_TRUE(*read == expected_) << "something else was read, byte " << at;
    } else {
      EXPECT_THAT(read.status(), FailsWith(kDataLoss, path_));
      ++detected;
    }
    Overwrite(path_ + "-wal", at, log_[at]);
  }
  EXPECT_GT(detected, 200);  // most are in replaced frames
  EXPECT_EQ(*ReadAll(database_.get()), expected_);
}

TEST_F(Wal, CheckpointRejectsDamagedPages) {
  for (size_t at = 5000; at < log_.size(); at += 4120) {
    Overwrite(path_ + "-wal", at, static_cast<char>(log_[at] ^ 16));
  }
  EXPECT_THAT(database_->CheckpointLog(), FailsWith(kDataLoss, path_));
  database_.reset();
  EXPECT_THAT(Start(path_), FailsWith(kDataLoss, path_ + "-wal is damaged"));
}

TEST_F(Wal, DamageAfterKillIsDetected) {
  EXPECT_FALSE(DetectsAfterKill([](const std::string&) {}));
  std::mt19937 random(1);
  int detected = 0;
  for (int round = 0; round < 1000; ++round) {
    detected += DetectsAfterKill([&](const std::string& copy) {
      const size_t at = random() % log_.size();
      Overwrite(copy + "-wal", at, static_cast<char>(log_[at] ^ (1 << random() % 8)));
    });
  }
  EXPECT_GT(detected, 980);  // all but unused bytes
  for (int round = 0; round < 200; ++round) {
    EXPECT_TRUE(DetectsAfterKill([&](const std::string& copy) {
      std::filesystem::resize_file(copy + "-wal", random() % log_.size());
    }));
  }
}

TEST_F(Wal, MissingLogIsDetected) {
  const std::string copy = folder_ / "copy";
  for (const char* suffix : {"", "-mark"})
    std::filesystem::copy_file(path_ + suffix, copy + suffix);
  EXPECT_THAT(Start(copy), FailsWith(kDataLoss, copy + "-wal is not there, but "));
  // After an orderly shutdown the log may be missing.
  ASSERT_THAT(database_->CheckpointLog(), IsOk());
  database_.reset();
  std::filesystem::remove(path_ + "-wal");
  ASSERT_OK_AND_ASSIGN(auto again, Start(path_));
  EXPECT_EQ(*ReadAll(again.get()), expected_);
}

TEST_F(Wal, MissingLogIsDetectedWithoutMark) {
  const std::string copy = folder_ / "copy";
  const absl::Status started = StartWithoutLogAndMark();
  EXPECT_THAT(started, FailsWith(kDataLoss, "file " + copy + "-wal is not there, but " + copy));
  EXPECT_THAT(started, FailsWith(kDataLoss, "restore from a backup"));
  EXPECT_TRUE(IsOperatorOnlyError(started));
  std::ofstream(copy + "-wal").close();
  EXPECT_THAT(Start(copy), FailsWith(kDataLoss, copy + "-wal is empty"));
  std::filesystem::copy_file(path_ + "-wal", copy + "-wal",
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_OK_AND_ASSIGN(const auto started_with_log, Start(copy));
  EXPECT_EQ(*ReadAll(started_with_log.get()), expected_);
  // Nothing is in the log once it was moved.
  ASSERT_THAT(database_->CheckpointLog(), IsOk());
  EXPECT_THAT(StartWithoutLogAndMark(), IsOk());
  Put(1, 77);
  EXPECT_THAT(StartWithoutLogAndMark(), FailsWith(kDataLoss, "-wal is not there"));
}

// The first page is written by checkpoints that do not empty the log.
TEST_F(Wal, RestartedLogIsMissedWithoutMark) {
  for (int round = 0; round < 20; ++round) {
    for (int row = 0; row < 40; ++row) Put(100 * round + row, 3000);
    EXPECT_THAT(StartWithoutLogAndMark(), FailsWith(kDataLoss, "-wal is not there"));
  }
}

// Then the log goes on instead of restarting.
TEST_F(Wal, LogThatAReaderHoldsIsMissedWithoutMark) {
  ASSERT_OK_AND_ASSIGN(const auto reader, Database::OpenReadOnly(path_));
  ASSERT_OK_AND_ASSIGN(const std::string before, ReadAll(reader.get()));
  ASSERT_THAT(database_->Query("PRAGMA busy_timeout = 0"), IsOk());  // the reader stays
  ASSERT_THAT(database_->CheckpointLog(), IsOk());
  EXPECT_THAT(StartWithoutLogAndMark(), IsOk());
  Put(1, 77);
  EXPECT_THAT(StartWithoutLogAndMark(), FailsWith(kDataLoss, "-wal is not there"));
  EXPECT_EQ(*ReadAll(reader.get()), before);
}

// As a kill between the sync of the first commit and that of the flag leaves it.
TEST_F(Wal, LogWithoutFlagOpens) {
  const std::string copy = folder_ / "copy";
  ASSERT_THAT(database_->CheckpointLog(), IsOk());
  std::filesystem::copy_file(path_, copy);
  {
    ASSERT_OK_AND_ASSIGN(const auto unmarked, Database::Open(copy));  // without EnableWalMark
    ASSERT_THAT(unmarked->Execute("DELETE FROM t WHERE a > 20"), IsOk());
    expected_ = *ReadAll(unmarked.get());
    std::filesystem::copy_file(copy, path_ + "-killed");
    std::filesystem::copy_file(copy + "-wal", path_ + "-killed-wal");
  }
  for (const std::string& path : {copy, path_ + "-killed"}) {
    ASSERT_OK_AND_ASSIGN(const auto database, Start(path));
    EXPECT_EQ(*ReadAll(database.get()), expected_);
  }
}

TEST(LogFlag, DiffersFromEveryFlippedBit) {
  std::mt19937 random(1);
  std::vector<unsigned char> page(512);
  for (unsigned char& byte : page) byte = static_cast<unsigned char>(random());
  const PageChecksum checksum = ChecksumOfPage(page.data(), 512, 0);
  std::copy(checksum.begin(), checksum.end(), page.end() - kPageChecksumBytes);
  for (const bool flag : {false, true}) {
    if (flag) page.back() = WithLogFlag(page.back());
    EXPECT_EQ(ReadLogFlag(page.data(), 512), flag);
    for (size_t bit = 0; bit < 8 * page.size(); ++bit) {
      page[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      EXPECT_EQ(ReadLogFlag(page.data(), 512), std::nullopt) << bit;
      EXPECT_FALSE(PageMatches(page.data(), 512, 0));
      page[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
  }
  EXPECT_FALSE(PageMatches(page.data(), 512, 512)) << "only the first page has the flag";
}

TEST_F(Wal, CommitToMovedFileReturnsUnavailable) {
  ASSERT_THAT(database_->CheckNotMoved(), IsOk());
  std::filesystem::rename(path_, path_ + ".moved");
  {
    ASSERT_OK_AND_ASSIGN(auto transaction, Transaction::Begin(database_.get()));
    EXPECT_THAT(transaction.Commit(), FailsWith(kUnavailable, "was moved"));
  }
  std::filesystem::rename(path_ + ".moved", path_);
  ASSERT_OK_AND_ASSIGN(auto transaction, Transaction::Begin(database_.get()));
  EXPECT_THAT(transaction.Commit(), IsOk());
}

TEST_F(Wal, DamagedMarkClaimsNothing) {
  const std::string mark = Contents(path_ + "-mark");
  ASSERT_EQ(mark.size(), 24u);
  for (size_t bit = 0; bit < 8 * mark.size(); ++bit) {
    EXPECT_FALSE(DetectsAfterKill([&](const std::string& copy) {
      Overwrite(copy + "-mark", bit / 8, static_cast<char>(mark[bit / 8] ^ (1 << bit % 8)));
    }));
  }
  EXPECT_FALSE(DetectsAfterKill(
      [](const std::string& copy) { std::filesystem::resize_file(copy + "-mark", 7); }));
  EXPECT_FALSE(
      DetectsAfterKill([](const std::string& copy) { std::filesystem::remove(copy + "-mark"); }));
}

TEST_F(Wal, RestartedLogHasValidMark) {
  for (int round = 0; round < 60; ++round) {
    for (int row = 0; row < 40; ++row) Put(row, 3000 + round);
    expected_ = *ReadAll(database_.get());
    EXPECT_FALSE(DetectsAfterKill([](const std::string&) {}));
  }
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), 12'000'000u);
}

// SQLite spills such pages to the log, rereads and rewrites them, and corrects their checksums at
// the end of the transaction.
TEST_F(Wal, TransactionLargerThanCacheSucceeds) {
  ASSERT_THAT(database_->Execute("PRAGMA cache_size = 5; BEGIN IMMEDIATE"), IsOk());
  for (int round = 0; round < 20; ++round) {
    for (int row = 0; row < 60; ++row) Put(row, 2000 + 10 * round + row);
    EXPECT_THAT(ReadAll(database_.get()), IsOk());
  }
  ASSERT_THAT(database_->Execute("COMMIT"), IsOk());
  expected_ = *ReadAll(database_.get());
  EXPECT_FALSE(DetectsAfterKill([](const std::string&) {}));
  ASSERT_THAT(database_->Execute("BEGIN IMMEDIATE"), IsOk());
  for (int row = 0; row < 60; ++row) Put(row, 5000);
  ASSERT_THAT(database_->Execute("ROLLBACK"), IsOk());
  EXPECT_EQ(*ReadAll(database_.get()), expected_);
  Put(1, 77);
  expected_ = *ReadAll(database_.get());
  EXPECT_FALSE(DetectsAfterKill([](const std::string&) {}));
}

TEST_F(Wal, ConcurrentReadersSucceed) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        ASSERT_OK_AND_ASSIGN(const auto reader, Database::OpenReadOnly(path_));
        EXPECT_THAT(ReadAll(reader.get()), IsOk());
      }
    });
  }
  for (int round = 0; round < 1500; ++round) Put(round % 40, 2000 + round);
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(database_->CheckpointLog(), IsOk());
}

}  // namespace
}  // namespace privatemail::sqlite

#include "common/sqlite/checksum_vfs.h"

#include <random>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/common/sqlite/table_contents.h"

namespace privatemail::sqlite {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 300;

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Inserts rows of many sizes, some of several pages.
void Fill(const std::string& path, const std::string& journal) {
  ASSERT_OK_AND_ASSIGN(const auto database, Database::Open(path));
  ASSERT_THAT(database->Query(absl::StrCat("PRAGMA journal_mode = ", journal)), IsOk());
  ASSERT_THAT(database->Execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)"), IsOk());
  ASSERT_OK_AND_ASSIGN(Transaction transaction, Transaction::Begin(database.get()));
  for (int row = 0; row < kRows; ++row) {
    ASSERT_OK_AND_ASSIGN(Statement insert, database->Prepare("INSERT INTO t VALUES (?1, ?2)"));
    const std::string blob(static_cast<size_t>(row % 10 == 0 ? 9000 : row), 'x');
    ASSERT_THAT(insert.Bind(1, int64_t{row}).BindBlob(2, blob.data(), blob.size()).Run(), IsOk());
  }
  ASSERT_THAT(transaction.Commit(), IsOk());
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  const auto database = Database::Open(path);
  return database.ok() ? ReadAll(database->get()) : database.status();
}

class ChecksumVfs : public ::testing::TestWithParam<const char*> {
 protected:
  ChecksumVfs() {
    Fill(path_, GetParam());
    sound_ = Contents(path_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
  std::string sound_;
};

TEST_P(ChecksumVfs, FlippedBitIsDetectedOrHarmless) {
  ASSERT_OK_AND_ASSIGN(const std::string expected, ReadAll(path_));
  std::mt19937 random(1);
  int detected = 0;
  for (int round = 0; round < 1000; ++round) {
    // 200 bits of the header, then random ones.
    const size_t bit =
        round < 200 ? static_cast<size_t>(round) * 4 : random() % (8 * sound_.size());
    std::string damaged = sound_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    WriteFile(path_, damaged);
    const absl::StatusOr<std::string> read = ReadAll(path_);
    if (read.ok()) {
      EXPECT_EQ(*read == expected, true) << "bit " << bit;
      continue;
    }
    ++detected;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << read.status() << " bit " << bit;
    EXPECT_THAT(read.status().message(), HasSubstr(path_));
  }
  EXPECT_GT(detected, 990) << "every page is read, and few bytes are unused";
}

TEST_P(ChecksumVfs, TruncationIsDetected) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    WriteFile(path_, sound_.substr(0, 1 + random() % (sound_.size() - 1)));
    const absl::StatusOr<std::string> read = ReadAll(path_);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << read.status();
    EXPECT_THAT(read.status().message(), HasSubstr(path_));
  }
}

TEST_P(ChecksumVfs, SwappedPagesAreDetected) {
  std::string damaged = sound_;
  damaged.replace(3 * 4096, 4096, sound_, 4 * 4096, 4096);
  damaged.replace(4 * 4096, 4096, sound_, 3 * 4096, 4096);
  WriteFile(path_, damaged);
  EXPECT_THAT(ReadAll(path_), FailsWith(kDataLoss, "does not match its checksum"));
}

INSTANTIATE_TEST_SUITE_P(Journals, ChecksumVfs, ::testing::Values("wal", "delete"),
                         [](const auto& journal) { return std::string(journal.param); });

// Changes, growth, shrinking, checkpoints and a rollback.
TEST(ChecksumVfsFile, StaysReadableThroughChanges) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  Fill(path, "wal");
  ASSERT_OK_AND_ASSIGN(const auto one, Database::Open(path));
  ASSERT_OK_AND_ASSIGN(const auto other, Database::Open(path));
  for (const char* change :
       {"DELETE FROM t WHERE a % 3 = 0", "PRAGMA wal_checkpoint(TRUNCATE)",
        "UPDATE t SET b = zeroblob(5000) WHERE a % 7 = 0", "BEGIN; DELETE FROM t; ROLLBACK",
        "PRAGMA wal_checkpoint(FULL)", "CREATE INDEX i ON t (b)", "VACUUM", "DROP INDEX i"}) {
    ASSERT_THAT(one->Execute(change), IsOk()) << change;
    EXPECT_THAT(other->Query("SELECT sum(length(b)) FROM t"), IsOk()) << change;
    ASSERT_OK_AND_ASSIGN(const std::string sound, other->Query("PRAGMA integrity_check"));
    EXPECT_EQ(sound, "ok") << change;
  }
}

TEST(ChecksumVfsFile, FileOfAnotherProgramIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  sqlite3* plain = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &plain), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(plain, "CREATE TABLE t (a)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(plain);
  EXPECT_THAT(ReadAll(path), FailsWith(kDataLoss, "does not match its checksum"));
}

}  // namespace
}  // namespace privatemail::sqlite

#include "client/files/private_file.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

// So that a killed process leaves no draft.
TEST(PrivateFile, HasNoNameBeforeCommit) {
  std::string folder = "/dev/shm/privatemail-XXXXXX";  // tmpfs, which has files without a name
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/file";
  for (const auto existing : {PrivateFile::Existing::kKeep, PrivateFile::Existing::kReplace}) {
    ASSERT_OK_AND_ASSIGN(const auto file, PrivateFile::Create("f", path, existing));
    ASSERT_THAT(file->Append("content"), IsOk());
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    ASSERT_THAT(file->Commit("!"), IsOk());
    EXPECT_EQ(Contents(path), "content!");
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    ASSERT_EQ(std::filesystem::remove_all(path), 1) << "the only name";
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove_all(folder);
}

// Names have at most 255 bytes: a draft's must not be longer than the file's.
TEST(PrivateFile, LongestNameIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder / std::string(255, 'n');
  for (const std::string content : {"first", "second"}) {
    ASSERT_OK_AND_ASSIGN(const auto file, PrivateFile::Create("f", path));
    ASSERT_THAT(file->Commit(content), IsOk());
    EXPECT_EQ(Contents(path), content);
  }
}

TEST(SaveChecked, RemovesDraftsOfFormerKills) {
  const TemporaryFolder folder;
  const std::string old = folder.Write(".draft-1-2-3", "x"), young = folder.Write(".draft-4", "x");
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(61));
  ASSERT_THAT(SaveChecked("f", folder / "file", "content"), IsOk());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young)) << "another process may be about to rename it";
  EXPECT_EQ(*LoadChecked(folder / "file"), "content");
}

TEST(LoadChecked, PipeIsNoMissingFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(LoadChecked(folder / "pipe"), FailsWith(kFailedPrecondition, "pipe"));
  EXPECT_THAT(LoadChecked(folder / "none"), FailsWith(kNotFound, "none"));
}

}  // namespace
}  // namespace privatemail::client

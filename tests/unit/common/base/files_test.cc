#include "common/base/files.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/testing/full_disk.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

TEST(WriteFileAtomically, FullDiskKeepsOldContent) {
  const TemporaryFolder folder;
  const std::string path = folder / "keys";
  ASSERT_THAT(WriteFileAtomically(path, "former", 0600), IsOk());
  absl::Status status;
  {
    const FullDisk full(10);
    status = WriteFileAtomically(path, "much more than ten bytes", 0600);
  }
  EXPECT_THAT(status, FailsWith(kExhausted, "cannot write " + path + ".new: File too large"));
  EXPECT_EQ(*ReadFile("file", path), "former");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_THAT(WriteFileAtomically(path, "much more than ten bytes", 0600), IsOk());
}

// Reading these would never end or would block.
TEST(ReadFile, NonRegularFileIsRejectedWithoutBlocking) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")}) {
    EXPECT_THAT(ReadFile("--tls-key", path),
                FailsWith(kFailedPrecondition,
                          "cannot read --tls-key " + path + ": it must be a regular file"));
  }
  EXPECT_THAT(ReadFile("--tls-key", folder.path()),
              FailsWith(kFailedPrecondition, "Is a directory"));
  EXPECT_THAT(ReadFile("--tls-key", folder / "none"),
              FailsWith(kFailedPrecondition, "No such file"));
}

TEST(ReadFile, SizeLimitIsInclusive) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("config", "12345");
  EXPECT_EQ(ReadFile("--config", path, 5).value(), "12345");
  EXPECT_THAT(ReadFile("--config", path, 4),
              FailsWith(kFailedPrecondition, path + ": it must be at most 4 bytes, but is larger"));
  std::filesystem::resize_file(path, uintmax_t{1} << 40);  // takes no place on disk
  EXPECT_THAT(ReadFile("--config", path), FailsWith(kFailedPrecondition, "at most 16777216 bytes"));
}

TEST(ReadFileBytes, OtherThanAFileWithBytesIsNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadFileBytes(folder.Write("five", "12345"), 5).value(), "12345");
  const std::string empty = folder.Write("empty", "");
  EXPECT_THAT(ReadFileBytes(empty), FailsWith(kInvalid, empty + ": the file is empty"));
  EXPECT_THAT(ReadFileBytes(folder / "five", 4), FailsWith(kInvalid, "of at most 4 bytes, got 5"));
  std::filesystem::resize_file(empty, std::uintmax_t{1} << 43);
  EXPECT_THAT(ReadFileBytes(empty, size_t{1} << 42), FailsWith(kInvalid, "at most 4398046511104"))
      << "without taking memory for it";
  EXPECT_THAT(ReadFileBytes(folder / "none"), FailsWith(kInvalid, "/none: no such file"));
  EXPECT_THAT(ReadFileBytes(folder.path()), FailsWith(kInvalid, "but it is a folder"));
  EXPECT_THAT(ReadFileBytes("/dev/zero"), FailsWith(kInvalid, "expected a regular file"));
}

}  // namespace
}  // namespace privatemail

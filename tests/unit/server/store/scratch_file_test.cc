#include "server/store/scratch_file.h"

#include <sys/resource.h>

#include <filesystem>

#include "tests/testing/full_disk.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// Forbids further descriptors.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(ScratchFile, ReadsBackAppendedBytes) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto file, ScratchFile::Create(folder.path(), "a test"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  ASSERT_THAT(file->Append("first "), IsOk());
  ASSERT_THAT(file->Append("second"), IsOk());
  EXPECT_EQ(file->size(), 12);
  std::string read(8, ' ');
  ASSERT_THAT(file->Read(4, read.size(), read.data()), IsOk());
  EXPECT_EQ(read, "t second");
  EXPECT_THAT(file->Read(5, read.size(), read.data()),
              FailsWith(kDataLoss, "shorter than was written"));
}

TEST(ScratchFile, FullDiskIsNamed) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto file, ScratchFile::Create(folder.path(), "a test"));
  const FullDisk full(1024);
  EXPECT_THAT(file->Append(std::string(2000, 'x')),
              FailsWith(kExhausted, "cannot write the file in data_dir for a test"));
}

TEST(ScratchFile, CreationErrorsNameReason) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      ScratchFile::Create(folder / "none", "a test"),
      FailsWith(kFailedPrecondition, "cannot create a file for a test in " + (folder / "none")));
  EXPECT_THAT(ScratchFile::Create("/proc", "a test"), FailsWith(kFailedPrecondition, "in /proc"));
  const NoMoreFiles none;
  EXPECT_THAT(ScratchFile::Create(folder.path(), "a test"),
              FailsWith(kExhausted, "Too many open files"));
}

}  // namespace
}  // namespace privatemail::testing

// Scratch files on file systems and kernels without O_TMPFILE.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>

#include "server/store/scratch_file.h"
#include "tests/unit/server/fixtures.h"

namespace {

int refusal = 0;  // with which a file without a name is refused

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = refusal;
    return -1;
  }
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace privatemail::testing {
namespace {

// The number of created files.
int MadeIn(int watch) {
  char events[4096];
  const ssize_t size = ::read(watch, events, sizeof(events));
  int made = 0;
  for (ssize_t at = 0; at < size; ++made) {
    at += static_cast<ssize_t>(sizeof(inotify_event) +
                               reinterpret_cast<const inotify_event*>(events + at)->len);
  }
  return made;
}

TEST(NamedScratchFile, NameIsRemovedAtOnce) {
  for (const int error : {EOPNOTSUPP, EISDIR}) {
    refusal = error;
    const TemporaryFolder folder;
    const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(::inotify_add_watch(watch, folder.path().c_str(), IN_CREATE), 0);
    ASSERT_OK_AND_ASSIGN(const auto file, ScratchFile::Create(folder.path(), "a test"));
    EXPECT_EQ(MadeIn(watch), 1) << "it had no name: this test tests nothing";
    ::close(watch);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    ASSERT_THAT(file->Append("text"), IsOk());
    std::string read(2, ' ');
    ASSERT_THAT(file->Read(2, read.size(), read.data()), IsOk());
    EXPECT_EQ(read, "xt");
  }
}

TEST(NamedScratchFile, OtherErrorsAreNotRetried) {
  refusal = ENOSPC;
  const TemporaryFolder folder;
  EXPECT_THAT(ScratchFile::Create(folder.path(), "a test"), FailsWith(kExhausted, "No space left"));
}

}  // namespace
}  // namespace privatemail::testing

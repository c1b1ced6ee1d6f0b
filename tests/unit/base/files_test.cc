#include "common/base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

// While it lives, this process writes no file beyond so many bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : former_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit = {bytes, former_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &former_);
    std::signal(SIGXFSZ, former_handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit former_ = {};
  void (*former_handler_)(int);
};

TEST(Files, OnAFullDiskTheFormerContentStaysAndNoPartOfTheNewOneIsLeft) {
  const TemporaryFolder folder;
  const std::string path = folder / "keys";
  ASSERT_THAT(WriteFileAtomically(path, "former", 0600), IsOk());
  absl::Status status;
  {
    const FullDisk full(10);
    status = WriteFileAtomically(path, "much more than ten bytes", 0600);
  }
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kResourceExhausted,
                                "cannot write " + path + ".new: File too large"));
  EXPECT_EQ(*ReadFile("file", path), "former");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_THAT(WriteFileAtomically(path, "much more than ten bytes", 0600), IsOk());
}

}  // namespace
}  // namespace privatemail

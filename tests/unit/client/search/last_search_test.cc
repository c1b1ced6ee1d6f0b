#include "client/search/last_search.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/full_disk.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

// Sizes differ, so that a mix of two drafts is detected.
LastSearch ReleaseOf(int sender) {
  LastSearch last;
  last.message = std::string(80'000 * (sender + 1), static_cast<char>('a' + sender));
  last.collection.set_name(absl::StrCat("of sender ", sender));
  return last;
}

std::string BytesOf(const LastSearch& last) {
  return last.message + last.collection.SerializeAsString();
}

TEST(LastSearch, RoundTripsWithOwnerOnlyMode) {
  const TemporaryFolder folder;
  EXPECT_THAT(LoadLastRelease(folder.path()), FailsWith(kNotFound, "nothing was released yet"));
  for (const int sender : {2, 0}) {
    for (const auto& [name, scheme] : kSchemeNames) {
      LastSearch saved = ReleaseOf(sender);
      saved.scheme = scheme;
      ASSERT_THAT(SaveLastSearch(folder.path(), saved), IsOk());
      ASSERT_OK_AND_ASSIGN(const LastSearch last, LoadLastSearch(folder.path()));
      EXPECT_EQ(last.scheme, scheme) << name;
      EXPECT_EQ(BytesOf(last), BytesOf(saved));
    }
  }
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(file.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

TEST(LastSearch, EveryFlippedBitIsDetected) {
  const TemporaryFolder folder;
  LastSearch saved = ReleaseOf(0);
  saved.message.resize(20);
  ASSERT_THAT(SaveLastSearch(folder.path(), saved), IsOk());
  const std::string path = folder / "last_release.pb";
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (std::streamoff at = 0; at < size; ++at) {
    file.seekg(at);
    const auto byte = static_cast<char>(file.get());
    for (const auto value : {static_cast<char>(byte ^ (1 << at % 8)), byte}) {
      file.seekp(at);
      file.put(value).flush();
      EXPECT_EQ(LoadLastRelease(folder.path()).ok(), value == byte) << "byte " << at;
    }
  }
}

TEST(LastSearch, OfAnotherCollectionIsRefused) {
  const TemporaryFolder folder;
  ASSERT_THAT(SaveLastSearch(folder.path(), ReleaseOf(1)), IsOk());
  EXPECT_THAT(LoadLastRelease(folder.path(), "of sender 1"), IsOk());
  EXPECT_THAT(LoadLastRelease(folder.path(), "things"),
              FailsWith(kFailedPrecondition, "of sender 1, not for things"));
}

TEST(LastSearch, MissingFolderAndDamagedFileFail) {
  const TemporaryFolder folder;
  EXPECT_THAT(SaveLastSearch(folder / "missing", ReleaseOf(0)),
              FailsWith(kUnavailable, "last_release.pb cannot be written"));
  ASSERT_THAT(SaveLastSearch(folder.path(), ReleaseOf(0)), IsOk());
  std::filesystem::resize_file(folder / "last_release.pb", 1000);
  EXPECT_THAT(LoadLastRelease(folder.path()), FailsWith(kDataLoss, "last_release.pb is damaged"));
}

TEST(LastSearch, SpaceIsReservedAndGivenBack) {
  const TemporaryFolder folder;
  {
    const FullDisk full(10'000);
    EXPECT_THAT(ReserveLastSearch(folder.path(), ReleaseOf(0), 10'000),
                FailsWith(kUnavailable, "last_release.pb cannot be written: File too large"));
  }
  ASSERT_THAT(SaveLastSearch(folder.path(), ReleaseOf(1)), IsOk());
  const auto bytes = std::filesystem::file_size(folder / "last_release.pb");
  ASSERT_OK_AND_ASSIGN(auto reserved, ReserveLastSearch(folder.path(), ReleaseOf(1), 10'000));
  ASSERT_THAT(SaveLastSearch(folder.path(), ReleaseOf(1), std::move(reserved)), IsOk());
  EXPECT_EQ(std::filesystem::file_size(folder / "last_release.pb"), bytes);
}

TEST(LastSearch, ConcurrentSavesLeaveOneWholeFile) {
  constexpr int kSenders = 3;
  const TemporaryFolder folder;
  ASSERT_THAT(SaveLastSearch(folder.path(), ReleaseOf(0)), IsOk());
  std::vector<std::string> whole;
  std::vector<pid_t> senders;
  for (int sender = 0; sender < kSenders; ++sender) {
    const LastSearch own = ReleaseOf(sender);
    whole.push_back(BytesOf(own));
    senders.push_back(::fork());
    ASSERT_GE(senders.back(), 0);
    if (senders.back() == 0) {
      int failed = 0;
      for (int i = 0; i < 300; ++i) failed += SaveLastSearch(folder.path(), own).ok() ? 0 : 1;
      ::_exit(failed == 0 ? 0 : 1);
    }
  }
  int ended = 0;
  for (int status = 0; ended < kSenders;) {
    const LastSearch last = LoadLastRelease(folder.path()).value_or(LastSearch());
    EXPECT_NE(std::find(whole.begin(), whole.end(), BytesOf(last)), whole.end())
        << "a mix of two: " << last.message.substr(0, 1) << ", " << last.collection.name();
    if (::waitpid(senders[static_cast<size_t>(ended)], &status, WNOHANG) == 0) continue;
    EXPECT_EQ(status, 0) << "sender " << ended << " got an error that its release cannot be kept";
    ++ended;
  }
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    files += file.exists() ? 1 : 0;
  }
  EXPECT_EQ(files, 1) << "a draft was left behind";
}

}  // namespace
}  // namespace privatemail::client

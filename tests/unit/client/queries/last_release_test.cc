#include "client/queries/last_release.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

// Sizes differ, so that a mix of two drafts is detected.
LastRelease ReleaseOf(int sender) {
  LastRelease last;
  last.request.set_collection(absl::StrCat("of sender ", sender));
  last.request.mutable_release()->mutable_values()->Resize(20'000 * (sender + 1),
                                                           static_cast<float>(sender));
  last.collection.set_name(last.request.collection());
  return last;
}

std::string BytesOf(const LastRelease& last) {
  return last.request.SerializeAsString() + last.collection.SerializeAsString();
}

TEST(LastRelease, RoundTripsWithOwnerOnlyMode) {
  const TemporaryFolder folder;
  EXPECT_THAT(LoadLastRelease(folder.path()),
              FailsWith(absl::StatusCode::kNotFound, "nothing was released yet"));
  for (const int sender : {2, 0}) {
    ASSERT_THAT(SaveLastRelease(folder.path(), ReleaseOf(sender)), IsOk());
    ASSERT_OK_AND_ASSIGN(const LastRelease last, LoadLastRelease(folder.path()));
    EXPECT_EQ(BytesOf(last), BytesOf(ReleaseOf(sender)));
  }
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(file.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

TEST(LastRelease, CellsRoundTrip) {
  const TemporaryFolder folder;
  LastRelease saved = ReleaseOf(0);
  saved.request.Clear();
  saved.scheme = Scheme::kCells;
  saved.cells.set_collection("of cells");
  saved.cells.add_cells(7);
  ASSERT_THAT(SaveLastRelease(folder.path(), saved), IsOk());
  ASSERT_OK_AND_ASSIGN(const LastRelease last, LoadLastRelease(folder.path()));
  EXPECT_EQ(BytesOf(last), BytesOf(saved));
  EXPECT_EQ(last.scheme, Scheme::kCells);
  EXPECT_EQ(last.cells.SerializeAsString(), saved.cells.SerializeAsString());
}

TEST(LastRelease, SchemeRoundTrips) {
  for (const auto& [name, scheme] : kSchemeNames) {
    const TemporaryFolder folder;
    LastRelease saved = ReleaseOf(1);
    saved.scheme = scheme;
    if (scheme == Scheme::kEncrypted) saved.view = "{}";
    ASSERT_THAT(SaveLastRelease(folder.path(), saved), IsOk());
    ASSERT_OK_AND_ASSIGN(const LastRelease last, LoadLastSearch(folder.path()));
    EXPECT_EQ(last.scheme, scheme) << name;
    EXPECT_EQ(last.view, saved.view) << name;
    EXPECT_EQ(BytesOf(last), BytesOf(saved));
  }
}

TEST(LastRelease, EveryFlippedBitIsDetected) {
  const TemporaryFolder folder;
  LastRelease saved = ReleaseOf(0);
  saved.request.mutable_release()->mutable_values()->Resize(5, 1);
  ASSERT_THAT(SaveLastRelease(folder.path(), saved), IsOk());
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

TEST(LastRelease, MissingFolderAndDamagedFileFail) {
  const TemporaryFolder folder;
  EXPECT_THAT(SaveLastRelease(folder / "missing", ReleaseOf(0)),
              FailsWith(absl::StatusCode::kUnavailable, "last_release.pb cannot be written"));
  ASSERT_THAT(SaveLastRelease(folder.path(), ReleaseOf(0)), IsOk());
  std::filesystem::resize_file(folder / "last_release.pb", 1000);
  EXPECT_THAT(LoadLastRelease(folder.path()),
              FailsWith(absl::StatusCode::kDataLoss, "last_release.pb is damaged"));
}

TEST(LastRelease, ConcurrentSavesLeaveOneWholeFile) {
  constexpr int kSenders = 3;
  const TemporaryFolder folder;
  ASSERT_THAT(SaveLastRelease(folder.path(), ReleaseOf(0)), IsOk());
  std::vector<std::string> whole;
  std::vector<pid_t> senders;
  for (int sender = 0; sender < kSenders; ++sender) {
    const LastRelease own = ReleaseOf(sender);
    whole.push_back(BytesOf(own));
    senders.push_back(::fork());
    ASSERT_GE(senders.back(), 0);
    if (senders.back() == 0) {
      int failed = 0;
      for (int i = 0; i < 300; ++i) failed += SaveLastRelease(folder.path(), own).ok() ? 0 : 1;
      ::_exit(failed == 0 ? 0 : 1);
    }
  }
  int ended = 0;
  for (int status = 0; ended < kSenders;) {
    const LastRelease last = LoadLastRelease(folder.path()).value_or(LastRelease());
    EXPECT_NE(std::find(whole.begin(), whole.end(), BytesOf(last)), whole.end())
        << "a mix of two: " << last.request.collection() << ", " << last.collection.name();
    if (::waitpid(senders[static_cast<size_t>(ended)], &status, WNOHANG) == 0) continue;
    EXPECT_EQ(status, 0) << "sender " << ended << " was told that its release cannot be kept";
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

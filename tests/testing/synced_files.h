// A simulated disk under another program: it loses power, ignores syncs or is full.
#ifndef PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_H_
#define PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/testing/temporary_folder.h"

namespace privatemail {

// The fate of unsynced content at a power cut.
enum class UnsyncedBytes {
  kLost,
  kHalf,  // each sector of 512 bytes and each size with probability 1/2, independently
  kKept,
};
// The fate of unsynced creations, renames and removals. A journal keeps their order, so that a cut
// leaves a prefix of them; these are the two extremes.
enum class UnsyncedNames { kLost, kKept };

struct PowerLoss {
  UnsyncedBytes bytes = UnsyncedBytes::kLost;
  UnsyncedNames names = UnsyncedNames::kLost;
  uint64_t seed = 1;  // of kHalf
};

// The working folder of a program that was started with environment(), and a second folder with
// what a disk would hold of it. synced_files_preload.cc replaces the program's fsync and fdatasync:
// they copy a file's content and size, or a folder's names. sync_file_range and the like copy
// nothing.
//
// Beyond POSIX, as on ext4, XFS and Btrfs:
//   - the sync of a file also makes its name durable; PostgreSQL 15 relies on it
//   - a name without synced content is an empty file
//
// Not simulated: torn sectors, mappings, content of renamed folders, times, modes. Not thread-safe.
class SyncedFiles {
 public:
  // All of the folder is durable at first. Aborts if the file system has no times of birth.
  explicit SyncedFiles(std::string folder);

  // NAME=VALUE, with LD_PRELOAD. The program must run as the folder's owner.
  std::vector<std::string> environment() const;

  // Faults of files whose path in the folder begins with `prefix` ("/base/"; "" for all):
  void IgnoreSyncs(const std::string& prefix);
  void Fill(const std::string& prefix);  // they cannot grow: ENOSPC
  void MakeRoom();

  // Until Cut, syncs wait. The program must be ended between Stop and Cut.
  void Stop();
  // Restores the folder to the disk's state and ends all faults.
  void Cut(const PowerLoss& loss);

 private:
  void Reset();
  std::map<std::string, std::string> Names(UnsyncedNames unsynced) const;
  // working: path of the file in the folder, "" if it was removed.
  std::string Remains(const std::string& key, const std::string& working, UnsyncedBytes bytes);
  void SetControl(const char* name, const std::string& prefix) const;

  const std::string folder_;
  const TemporaryFolder disk_;
  struct stat owner_ = {};  // of the folder
  std::mt19937_64 coins_;
  int lock_ = -1;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_H_

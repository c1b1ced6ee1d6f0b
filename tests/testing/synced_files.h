// A disk under another program that loses power, lies or is full.
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

// What becomes of what was not synced when the power goes.
enum class UnsyncedBytes {
  kLost,
  kHalf,  // each sector of 512 bytes, and each size, by a coin of its own, whatever their order
  kKept,
};
// Of files that were made, renamed and removed. File systems with a journal keep such changes in
// their order, so that a cut leaves none or the first of them: these are the ends.
enum class UnsyncedNames { kLost, kKept };

struct PowerLoss {
  UnsyncedBytes bytes = UnsyncedBytes::kLost;
  UnsyncedNames names = UnsyncedNames::kLost;
  uint64_t seed = 1;  // of the coins
};

// A folder in which a program works that was started with environment(), and beside it, in a folder
// of its own, what a disk would hold of it. The program's fsync and fdatasync are replaced
// (synced_files_preload.cc) and carry over, of a file, content and size; of a folder, the names in
// it. sync_file_range and the like, which promise nothing, carry over nothing.
//
// A file's own sync gives it its name on the disk when it has none there. POSIX does not promise
// that, but ext4, XFS and Btrfs do it, and PostgreSQL 15 counts on it: of a database that it makes
// it syncs pg_filenode.map, but not the folder, and does not find it after a cut where that is not
// so. A name that was kept without any content is that of an empty file, as after a journal that
// was written before the data.
//
// Not simulated: sectors are written whole or not at all; mappings (PostgreSQL maps no file of its
// data); renamed folders lose what is in them; times and modes. For one thread at a time.
class SyncedFiles {
 public:
  // All of the folder is on the disk at first. Aborts where files have no time of birth.
  explicit SyncedFiles(std::string folder);

  // NAME=VALUE, with LD_PRELOAD. For programs run by the folder's owner.
  std::vector<std::string> environment() const;

  // Faults, from here on. Of files whose path in the folder begins so ("/base/"; "": all):
  void IgnoreSyncs(const std::string& prefix);
  void Fill(const std::string& prefix);  // they do not grow: ENOSPC
  void MakeRoom();

  // The disk takes nothing more between Stop and Cut, the program waits should it sync. To be ended
  // meanwhile.
  void Stop();
  // Leaves in the folder what the disk holds, all of which is on it then; the faults are over.
  void Cut(const PowerLoss& loss);

 private:
  void Reset();
  std::map<std::string, std::string> Names(UnsyncedNames unsynced) const;
  // working: where in the folder the file is, "" where it is no more.
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

// A simulated disk that loses power. Linking simulated_disk.cc replaces the file calls of the C
// library in the whole program and its shared libraries (SQLite); the executable needs
// ENABLE_EXPORTS.
#ifndef PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_
#define PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace privatemail {

// The fate of unsynced writes at a power cut.
enum class Unsynced {
  kLost,
  kKept,  // as if only the process had ended
  kHalf,  // each sector, size and name with probability 1/2, independently
};

struct PowerCut {
  int64_t before_call = INT64_MAX;  // counted from 1; at the end if there are fewer calls
  Unsynced unsynced = Unsynced::kLost;
  uint64_t seed = 1;                // of kHalf
  bool disk_ignores_syncs = false;  // a fault that a durability test must detect
};

// Results that a run writes and that survive its power cut. Initially zero.
struct ProcessRun {
  int64_t calls = 0;  // calls that change or sync a file
  int64_t reported = 0;
  int64_t shown = 0;
  int64_t later = 0;
  int status_code = 0;
};

// Birth times of files by name, which survive a cut besides names and content.
using Births = std::map<std::string, int64_t>;

// Calls `run` in a forked process on the flat folder, whose files are all durable at first, and
// cuts the power. Afterwards the folder and `births` hold what the disk holds.
//
// Durability, as POSIX promises it:
//   content and size of a file   fsync or fdatasync of the file
//   names                        fsync of the folder
// No call sets the birth time of a file, so statx returns that of the file on this disk, and no
// inode. Not simulated: torn sectors (512 bytes), modes, symbolic links, mappings.
ProcessRun RunUntilPowerCut(const std::string& folder, const PowerCut& cut, Births& births,
                            const std::function<void(ProcessRun&)>& run);

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_

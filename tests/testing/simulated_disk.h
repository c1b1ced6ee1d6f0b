// A disk that loses power. Linking simulated_disk.cc replaces the C library's calls that change
// files for the whole program, shared libraries (SQLite) included, which needs ENABLE_EXPORTS on
// the executable.
#ifndef PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_
#define PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace privatemail {

// What becomes of writes that were not synced when the power goes.
enum class Unsynced {
  kLost,
  kKept,  // as after the end of a process: the system goes on and writes them in time
  kAllButStamps,
  kStampsOnly,
  kHalf,  // each sector, size, name and time stamp by a coin of its own, whatever their order
};

struct PowerCut {
  int64_t before_call = INT64_MAX;  // counted from 1; later than the last: at the end
  Unsynced unsynced = Unsynced::kLost;
  uint64_t seed = 1;                // of the coins
  bool disk_ignores_syncs = false;  // a planted fault: what a test of durability has to notice
};

// Written by the life below, read after it ended: it survives the cut. Zero at first.
struct Life {
  int64_t calls = 0;  // that changed a file or made it durable
  int64_t reported = 0;
  int64_t shown = 0;
  int64_t later = 0;
  int status_code = 0;
};

// What of a folder survives a cut besides names and content: the kernel's stamps (ctime) by name.
using Stamps = std::map<std::string, int64_t>;

// Runs `life` in a forked process on the flat folder, all of whose files are durable at first, and
// cuts the power. Leaves in the folder and in `stamps` what the disk then holds.
//
// A file's content and size reach the disk by fsync or fdatasync of the file, its stamp by fsync,
// names (made, removed, renamed) by fsync of the folder: what POSIX promises and no more. No kernel
// can be told a ctime, so that one call is answered from the simulation, too: fstat shows the stamp
// of the last write that this disk has seen. Not simulated: a sector of 512 bytes is written whole
// or not at all, and no write changes its neighbours; modes, links and mappings are left out.
Life LiveUntilPowerCut(const std::string& folder, const PowerCut& cut, Stamps& stamps,
                       const std::function<void(Life&)>& life);

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_SIMULATED_DISK_H_

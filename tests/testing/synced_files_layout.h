// What synced_files.cc and synced_files_preload.cc agree on: variables, names of files, and by what
// a file is known.
#ifndef PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_LAYOUT_H_
#define PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_LAYOUT_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace privatemail::synced {

// In the environment of the process: the folder that it works in, and the disk's, which has the
// following in it.
inline constexpr char kWorkVariable[] = "PRIVATEMAIL_SYNCED_FILES_WORK";
inline constexpr char kDiskVariable[] = "PRIVATEMAIL_SYNCED_FILES_DISK";

inline constexpr char kLock[] = "/lock";     // held while something reaches the disk, and by a cut
inline constexpr char kFiles[] = "/files/";  // what was synced of each file, by its key
inline constexpr char kNames[] = "/names";   // the same by synced names: links to those
inline constexpr char kIgnored[] = "/ignored";  // path prefix of files whose syncs do nothing
inline constexpr char kFull[] = "/full";        // path prefix of files that find no place to grow

// The same for a file whatever its name, and another for each file that ever was: numbers of files
// are used again, with a time of birth of their own. Empty: there is no such file, or the file
// system knows no times of birth. An empty path is the open file `at`.
inline std::string KeyOf(int at, const char* path) {
  struct statx file = {};
  const int flags = AT_SYMLINK_NOFOLLOW | (*path == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(at, path, flags, STATX_INO | STATX_BTIME, &file) != 0) return "";
  if ((file.stx_mask & STATX_BTIME) == 0) return "";
  return std::to_string(file.stx_ino) + "-" + std::to_string(file.stx_btime.tv_sec) + "-" +
         std::to_string(file.stx_btime.tv_nsec);
}

}  // namespace privatemail::synced

#endif  // PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_LAYOUT_H_

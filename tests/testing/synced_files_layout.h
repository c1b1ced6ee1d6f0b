// Variables, file names and file keys shared by synced_files.cc and synced_files_preload.cc.
#ifndef PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_LAYOUT_H_
#define PRIVATEMAIL_TESTS_TESTING_SYNCED_FILES_LAYOUT_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace privatemail::synced {

// Environment variables: the working folder, and the disk's folder with the files below.
inline constexpr char kWorkVariable[] = "PRIVATEMAIL_SYNCED_FILES_WORK";
inline constexpr char kDiskVariable[] = "PRIVATEMAIL_SYNCED_FILES_DISK";

inline constexpr char kLock[] = "/lock";        // held during a sync and a cut
inline constexpr char kFiles[] = "/files/";     // synced content by file key
inline constexpr char kNames[] = "/names";      // synced names: links to kFiles
inline constexpr char kIgnored[] = "/ignored";  // path prefix of files whose syncs do nothing
inline constexpr char kFull[] = "/full";        // path prefix of files that cannot grow

// Identifies a file independent of its name: inode and time of birth, because inodes are reused.
// Empty if there is no such file or no time of birth. An empty path means the open file `at`.
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

// LD_PRELOAD library that implements synced_files.h in the server's process: copies what it syncs,
// and refuses writes without space. Uses only the C and C++ libraries, no sanitizers.
//
// Forks of the server share the disk; one lock makes every sync atomic.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/testing/synced_files_layout.h"

namespace privatemail::synced {
namespace {

// Copies: PostgreSQL writes over its environment.
struct Folders {
  std::string work;
  std::string disk;
  std::string full;  // path of the file that says so
};

const Folders& TheFolders() {
  static const Folders* const folders = [] {
    const auto value = [](const char* name) {
      const char* const text = std::getenv(name);
      return std::string(text == nullptr ? "" : text);
    };
    const std::string disk = value(kDiskVariable);
    return new Folders{value(kWorkVariable), disk, disk + kFull};
  }();
  return *folders;
}
// Before main, for the reason above.
__attribute__((constructor)) void RememberFolders() { TheFolders(); }

template <typename Function>
Function* Next(Function* /*of this type*/, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Closes what it is given.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

// Whether an open file is in the folder; its path there, "" for the folder itself.
bool IsAtWork(int file, std::string* path) {
  const Folders& folders = TheFolders();
  if (folders.work.empty()) return false;
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
  if (size < 0) return false;
  const std::string whole(target, static_cast<size_t>(size));
  if (whole.compare(0, folders.work.size(), folders.work) != 0) return false;
  *path = whole.substr(folders.work.size());
  return path->empty() || path->front() == '/';
}

// Whether a path begins with what a file of the disk's folder says, if it is there.
bool IsNamedBy(const std::string& list, const std::string& path) {
  const Descriptor file(::open(list.c_str(), O_RDONLY | O_CLOEXEC));
  char prefix[PATH_MAX];
  const ssize_t size = ::read(file.number(), prefix, sizeof(prefix));
  return size >= 0 &&
         path.compare(0, static_cast<size_t>(size), prefix, static_cast<size_t>(size)) == 0;
}

bool WriteAll(int file, const char* bytes, size_t size, off_t at) {
  static auto* const next = Next(&::pwrite, "pwrite");
  while (size > 0) {
    const ssize_t written = next(file, bytes, size, at);
    if (written < 0) return false;
    bytes += written;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool CopyContent(int from, int to) {
  std::vector<char> bytes(1 << 18);
  off_t at = 0;
  while (true) {
    const ssize_t size = ::pread(from, bytes.data(), bytes.size(), at);
    if (size < 0) return false;
    if (size == 0) return ::ftruncate(to, at) == 0;
    if (!WriteAll(to, bytes.data(), static_cast<size_t>(size), at)) return false;
    at += size;
  }
}

// Links a file's synced content to a name, replacing another file of that name.
bool Name(const std::string& stored, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(name).parent_path(), error);
  if (std::filesystem::equivalent(stored, name, error)) return true;
  ::unlink(name.c_str());
  return ::link(stored.c_str(), name.c_str()) == 0;
}

// Copies content and size; adds a name if the disk has none of the file.
bool KeepFile(int file, const std::string& path) {
  const std::string key = KeyOf(file, "");
  if (key.empty()) return false;
  // Opened again, because it may be open for writing only.
  const Descriptor from(
      ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC));
  const std::string stored = TheFolders().disk + kFiles + key;
  const Descriptor to(::open(stored.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  struct stat status = {};
  if (!CopyContent(from.number(), to.number()) || ::fstat(to.number(), &status) != 0) return false;
  return status.st_nlink > 1 || Name(stored, TheFolders().disk + kNames + path);
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(folder.c_str());
  while (const dirent* entry = open == nullptr ? nullptr : ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (open != nullptr) ::closedir(open);
  return names;
}

bool KeepName(const std::string& working, const std::string& kept) {
  struct stat status = {};
  if (::lstat(working.c_str(), &status) != 0) return errno == ENOENT;  // removed meanwhile
  if (S_ISDIR(status.st_mode)) return ::mkdir(kept.c_str(), 0700) == 0 || errno == EEXIST;
  const std::string stored = TheFolders().disk + kFiles + KeyOf(AT_FDCWD, working.c_str());
  const Descriptor made(::open(stored.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return made.number() >= 0 && Name(stored, kept);
}

// Makes the disk's names of a folder equal to the current ones, unsynced files included.
bool KeepNames(const std::string& path) {
  const std::string working = TheFolders().work + path;
  const std::string kept = TheFolders().disk + kNames + path;
  std::error_code error;
  std::filesystem::create_directories(kept, error);
  for (const std::string& name : NamesIn(kept)) {
    struct stat status = {};
    if (::lstat((working + "/" + name).c_str(), &status) == 0) continue;
    std::filesystem::remove_all(kept + "/" + name, error);
  }
  const std::vector<std::string> names = NamesIn(working);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return KeepName(working + "/" + name, kept + "/" + name);
  });
}

// Returns 0, or -1 with errno, as fsync does.
int Keep(int file, const std::string& path) {
  const Descriptor lock(::open((TheFolders().disk + kLock).c_str(), O_RDWR | O_CLOEXEC));
  while (::flock(lock.number(), LOCK_EX) != 0) {
    if (errno != EINTR) return -1;
  }
  if (IsNamedBy(TheFolders().disk + kIgnored, path)) return 0;
  struct stat status = {};
  if (::fstat(file, &status) != 0) return -1;
  if (status.st_nlink == 0) return 0;  // the file was removed
  if (S_ISDIR(status.st_mode) ? KeepNames(path) : KeepFile(file, path)) return 0;
  errno = EIO;
  return -1;
}

// Whether a write that ends at this offset needs space on a full disk.
bool IsRefused(int file, off_t end) {
  const std::string& full = TheFolders().full;
  if (full.size() < sizeof(kFull) || ::access(full.c_str(), F_OK) != 0) return false;
  std::string path;
  struct stat status = {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || end <= status.st_size)
    return false;
  return IsAtWork(file, &path) && IsNamedBy(full, path);
}

}  // namespace
}  // namespace privatemail::synced

using privatemail::synced::IsAtWork;
using privatemail::synced::IsRefused;
using privatemail::synced::Keep;
using privatemail::synced::Next;

// The real sync is not needed.
extern "C" int fsync(int file) {
  static auto* const next = Next(&::fsync, "fsync");
  std::string path;
  return IsAtWork(file, &path) ? Keep(file, path) : next(file);
}

extern "C" int fdatasync(int file) {
  static auto* const next = Next(&::fdatasync, "fdatasync");
  std::string path;
  return IsAtWork(file, &path) ? Keep(file, path) : next(file);
}

extern "C" ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const next = Next(&::write, "write");
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  if (at < 0 || !IsRefused(file, at + static_cast<off_t>(size))) return next(file, bytes, size);
  errno = ENOSPC;
  return -1;
}

extern "C" ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  static auto* const next = Next(&::pwrite, "pwrite");
  if (!IsRefused(file, at + static_cast<off_t>(size))) return next(file, bytes, size, at);
  errno = ENOSPC;
  return -1;
}

extern "C" ssize_t pwritev(int file, const iovec* pieces, int count, off_t at) {
  static auto* const next = Next(&::pwritev, "pwritev");
  off_t end = at;
  for (int i = 0; i < count; ++i) end += static_cast<off_t>(pieces[i].iov_len);
  if (!IsRefused(file, end)) return next(file, pieces, count, at);
  errno = ENOSPC;
  return -1;
}

extern "C" int posix_fallocate(int file, off_t at, off_t size) {
  static auto* const next = Next(&::posix_fallocate, "posix_fallocate");
  return IsRefused(file, at + size) ? ENOSPC : next(file, at, size);
}

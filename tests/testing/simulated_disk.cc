// Checked variants of open would be inlined over the definitions below.
#undef _FORTIFY_SOURCE

#include "tests/testing/simulated_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <vector>

namespace privatemail {
namespace {

constexpr size_t kSector = 512;
constexpr size_t kMostFiles = 8;

struct SharedStamp {
  char name[64];
  int64_t nanoseconds;
};
// In memory that parent and child share.
struct Shared {
  Life life;
  SharedStamp stamps[kMostFiles];
};

int64_t KernelTime() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // what the kernel stamps with
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A change of a file on its way to the disk.
struct Change {
  enum class Kind { kWrite, kSize, kStamp };
  Kind kind;
  int64_t at = 0;  // an offset, a size or a stamp
  std::string bytes = {};
};

struct File {
  std::string content;  // on disk
  int64_t stamp = 0;    // on disk
  std::vector<Change> pending = {};
  int64_t seen_stamp = 0;  // by the process

  void Apply(const Change& change) {
    switch (change.kind) {
      case Change::Kind::kWrite: {
        const auto end = static_cast<size_t>(change.at) + change.bytes.size();
        if (content.size() < end) content.resize(end);
        content.replace(static_cast<size_t>(change.at), change.bytes.size(), change.bytes);
        return;
      }
      case Change::Kind::kSize:
        content.resize(static_cast<size_t>(change.at));
        return;
      case Change::Kind::kStamp:
        stamp = change.at;
    }
  }
};
using Names = std::map<std::string, std::shared_ptr<File>>;
struct Renaming {
  std::string name;
  std::shared_ptr<File> file;  // null: removed
};

class Disk {
 public:
  Disk(std::string folder, const PowerCut& cut, const Stamps& stamps, Shared* shared)
      : folder_(std::move(folder)), cut_(cut), coins_(cut.seed), shared_(shared) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      auto file = std::make_shared<File>();
      file->content.assign(std::istreambuf_iterator<char>(in), {});
      const auto stamp = stamps.find(entry.path().filename());
      file->stamp = file->seen_stamp = stamp == stamps.end() ? KernelTime() : stamp->second;
      names_[entry.path().filename()] = file;
    }
    durable_names_ = names_;
  }

  // The name inside the folder, "" for the folder itself; false: elsewhere.
  bool Holds(const char* path, std::string* name) const {
    if (path == folder_) return name->clear(), true;
    const std::filesystem::path whole(path);
    if (whole.parent_path() != folder_) return false;
    *name = whole.filename();
    return true;
  }

  // Counts a call that is about to be made.
  void Count();

  void Opened(int descriptor, const std::string& name) {
    if (name.empty()) {
      folders_[descriptor] = true;
      return;
    }
    std::shared_ptr<File>& file = names_[name];
    if (file == nullptr) {
      file = std::make_shared<File>();
      file->stamp = file->seen_stamp = KernelTime();
      renamings_.push_back({name, file});
    }
    open_[descriptor] = file;
  }
  bool Exists(const std::string& name) const { return name.empty() || names_.count(name) > 0; }
  void Closed(int descriptor) {
    open_.erase(descriptor);
    folders_.erase(descriptor);
  }
  void Renamed(const std::string& name, std::shared_ptr<File> file) {
    renamings_.push_back({name, file});
    if (file == nullptr) {
      names_.erase(name);
    } else {
      names_[name] = std::move(file);
    }
  }
  std::shared_ptr<File> Named(const std::string& name) { return names_[name]; }

  File* Of(int descriptor) {
    const auto found = open_.find(descriptor);
    return found == open_.end() ? nullptr : found->second.get();
  }
  bool Knows(int descriptor) { return Of(descriptor) != nullptr || folders_.count(descriptor) > 0; }

  void Changed(File& file, Change change) {
    file.pending.push_back(std::move(change));
    file.seen_stamp = KernelTime();
    file.pending.push_back({Change::Kind::kStamp, file.seen_stamp});
  }

  void Synced(int descriptor, bool stamp_too) {
    if (cut_.disk_ignores_syncs) return;
    if (File* file = Of(descriptor)) {
      std::vector<Change> left;
      for (Change& change : file->pending) {
        if (change.kind == Change::Kind::kStamp && !stamp_too) {
          left.push_back(std::move(change));
        } else {
          file->Apply(change);
        }
      }
      file->pending = std::move(left);
      return;
    }
    for (const Renaming& renaming : renamings_) Apply(renaming);
    renamings_.clear();
  }

  [[noreturn]] void Cut();

 private:
  bool Survives(bool is_stamp) {
    switch (cut_.unsynced) {
      case Unsynced::kLost:
        return false;
      case Unsynced::kKept:
        return true;
      case Unsynced::kAllButStamps:
        return !is_stamp;
      case Unsynced::kStampsOnly:
        return is_stamp;
      case Unsynced::kHalf:
        return coins_() % 2 != 0;
    }
    std::abort();
  }
  void Apply(const Renaming& renaming) {
    if (renaming.file == nullptr) {
      durable_names_.erase(renaming.name);
    } else {
      durable_names_[renaming.name] = renaming.file;
    }
  }
  void Settle(File& file);

  const std::string folder_;
  const PowerCut cut_;
  std::mt19937_64 coins_;
  Shared* const shared_;
  Names names_;          // as the process sees them
  Names durable_names_;  // as the disk holds them
  std::vector<Renaming> renamings_;
  std::map<int, std::shared_ptr<File>> open_;
  std::map<int, bool> folders_;
};

Disk* disk = nullptr;  // in a life, until the cut

void Disk::Count() {
  if (++shared_->life.calls >= cut_.before_call) Cut();
}

// Brings to disk what of the pending changes survives.
void Disk::Settle(File& file) {
  for (const Change& change : file.pending) {
    if (change.kind != Change::Kind::kWrite) {
      if (Survives(change.kind == Change::Kind::kStamp)) file.Apply(change);
      continue;
    }
    for (size_t at = 0; at < change.bytes.size();) {
      const auto offset = static_cast<size_t>(change.at) + at;
      const size_t count = std::min(change.bytes.size() - at, kSector - offset % kSector);
      if (Survives(false)) {
        file.Apply(
            {Change::Kind::kWrite, static_cast<int64_t>(offset), change.bytes.substr(at, count)});
      }
      at += count;
    }
  }
}

void Disk::Cut() {
  disk = nullptr;  // calls from here on reach the real folder only
  for (const Renaming& renaming : renamings_) {
    if (Survives(false)) Apply(renaming);
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::remove(entry.path());
  }
  SharedStamp* stamp = shared_->stamps;
  for (const auto& [name, file] : durable_names_) {
    if (stamp == std::end(shared_->stamps) || name.size() >= sizeof(stamp->name)) std::abort();
    Settle(*file);
    std::ofstream(folder_ + "/" + name, std::ios::binary) << file->content;
    std::strcpy(stamp->name, name.c_str());
    (stamp++)->nanoseconds = file->stamp;
  }
  _exit(0);
}

// The C library's function that this file's one of the same name hides.
template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int Open(const char* path, int flags, mode_t mode) {
  static const auto real = Real<int(const char*, int, ...)>("open");
  std::string name;
  const bool held = disk != nullptr && disk->Holds(path, &name);
  if (held && (flags & O_CREAT) != 0 && !disk->Exists(name)) disk->Count();
  const int descriptor = real(path, flags, mode);
  if (held && descriptor >= 0) disk->Opened(descriptor, name);
  return descriptor;
}

ssize_t WriteAt(int descriptor, const void* bytes, size_t count, off_t offset) {
  static const auto real = Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  File* const file = disk != nullptr ? disk->Of(descriptor) : nullptr;
  if (file == nullptr) return real(descriptor, bytes, count, offset);
  disk->Count();
  const ssize_t written = real(descriptor, bytes, count, offset);
  if (written > 0) {
    disk->Changed(*file,
                  {Change::Kind::kWrite, offset,
                   std::string(static_cast<const char*>(bytes), static_cast<size_t>(written))});
  }
  return written;
}

int Truncate(int descriptor, off_t size) {
  static const auto real = Real<int(int, off_t)>("ftruncate");
  File* const file = disk != nullptr ? disk->Of(descriptor) : nullptr;
  if (file == nullptr) return real(descriptor, size);
  disk->Count();
  const int result = real(descriptor, size);
  if (result == 0) disk->Changed(*file, {Change::Kind::kSize, size});
  return result;
}

// The real disk is not asked: it has nothing to lose here, and would make thousands of lives slow.
bool SyncHere(int descriptor, bool stamp_too) {
  if (disk == nullptr || !disk->Knows(descriptor)) return false;
  disk->Count();
  disk->Synced(descriptor, stamp_too);
  return true;
}

int Status(int descriptor, struct stat* status) {
  static const auto real = Real<int(int, struct stat*)>("fstat");
  const int result = real(descriptor, status);
  File* const file = disk != nullptr ? disk->Of(descriptor) : nullptr;
  if (result == 0 && file != nullptr) {
    status->st_ctim.tv_sec = file->seen_stamp / 1'000'000'000;
    status->st_ctim.tv_nsec = file->seen_stamp % 1'000'000'000;
  }
  return result;
}

}  // namespace

Life LiveUntilPowerCut(const std::string& folder, const PowerCut& cut, Stamps& stamps,
                       const std::function<void(Life&)>& life) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const shared = new (memory) Shared();
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    disk = new Disk(folder, cut, stamps, shared);
    life(shared->life);
    if (disk == nullptr) std::abort();
    disk->Cut();
  }
  int state = 0;
  if (waitpid(child, &state, 0) != child || state != 0) std::abort();
  stamps.clear();
  for (const SharedStamp& stamp : shared->stamps) {
    if (stamp.name[0] != '\0') stamps[stamp.name] = stamp.nanoseconds;
  }
  const Life lived = shared->life;
  munmap(memory, sizeof(Shared));
  return lived;
}

}  // namespace privatemail

// What the program and its libraries call instead of the C library. off_t has 64 bits in both
// families.
static_assert(sizeof(off_t) == 8 && sizeof(struct stat) == sizeof(struct stat64));

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return privatemail::Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return privatemail::Open(path, flags, mode);
}

int close(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("close");
  if (privatemail::disk != nullptr) privatemail::disk->Closed(descriptor);
  return real(descriptor);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  return privatemail::WriteAt(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset) {
  return privatemail::WriteAt(descriptor, bytes, count, offset);
}
ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = privatemail::Real<ssize_t(int, const void*, size_t)>("write");
  if (privatemail::disk == nullptr || !privatemail::disk->Knows(descriptor)) {
    return real(descriptor, bytes, count);
  }
  const off_t at = lseek(descriptor, 0, SEEK_CUR);
  const ssize_t written = privatemail::WriteAt(descriptor, bytes, count, at);
  if (written > 0) lseek(descriptor, written, SEEK_CUR);
  return written;
}

int ftruncate(int descriptor, off_t size) noexcept {
  return privatemail::Truncate(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) noexcept {
  return privatemail::Truncate(descriptor, size);
}

int fsync(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("fsync");
  return privatemail::SyncHere(descriptor, true) ? 0 : real(descriptor);
}
int fdatasync(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("fdatasync");
  return privatemail::SyncHere(descriptor, false) ? 0 : real(descriptor);
}

int unlink(const char* path) noexcept {
  static const auto real = privatemail::Real<int(const char*)>("unlink");
  std::string name;
  const bool held = privatemail::disk != nullptr && privatemail::disk->Holds(path, &name) &&
                    privatemail::disk->Exists(name);
  if (held) privatemail::disk->Count();
  const int result = real(path);
  if (held && result == 0) privatemail::disk->Renamed(name, nullptr);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = privatemail::Real<int(const char*, const char*)>("rename");
  std::string old_name;
  std::string new_name;
  const bool held = privatemail::disk != nullptr && privatemail::disk->Holds(from, &old_name) &&
                    privatemail::disk->Holds(to, &new_name);
  if (held) privatemail::disk->Count();
  const int result = real(from, to);
  if (held && result == 0) {
    privatemail::disk->Renamed(new_name, privatemail::disk->Named(old_name));
    privatemail::disk->Renamed(old_name, nullptr);
  }
  return result;
}

int fstat(int descriptor, struct stat* status) noexcept {
  return privatemail::Status(descriptor, status);
}
int fstat64(int descriptor, struct stat64* status) noexcept {
  return privatemail::Status(descriptor, reinterpret_cast<struct stat*>(status));
}

}  // extern "C"

// Checked variants of open would be inlined over the definitions below.
#undef _FORTIFY_SOURCE

#include "tests/testing/simulated_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <string>

#include "tests/testing/disk_model.h"

namespace privatemail {
namespace {

using simulated::Change;
using simulated::disk;
using simulated::Disk;
using simulated::File;
using simulated::Shared;
using simulated::SharedBirth;

// The C library's function of this name.
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

// The real disk is not synced, which would make thousands of runs slow.
bool SyncHere(int descriptor) {
  if (disk == nullptr || !disk->Knows(descriptor)) return false;
  disk->Count();
  disk->Synced(descriptor);
  return true;
}

// rename(2), or link(2), which keeps the former name.
int GiveName(const char* from, const char* to, int (*real)(const char*, const char*), bool moves) {
  std::string former, name;
  const bool held = disk != nullptr && disk->Holds(from, &former) && disk->Holds(to, &name);
  if (held) disk->Count();
  const int result = real(from, to);
  if (held && result == 0) {
    disk->Renamed(name, disk->Named(former));
    if (moves) disk->Renamed(former, nullptr);
  }
  return result;
}

}  // namespace

ProcessRun RunUntilPowerCut(const std::string& folder, const PowerCut& cut, Births& births,
                            const std::function<void(ProcessRun&)>& run) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const shared = new (memory) Shared();
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) {
    disk = new Disk(folder, cut, births, shared);
    run(shared->run);
    if (disk == nullptr) std::abort();
    disk->Cut();
  }
  int state = 0;
  if (waitpid(child, &state, 0) != child || state != 0) std::abort();
  births.clear();
  for (const SharedBirth& birth : shared->births) {
    if (birth.name[0] != '\0') births[birth.name] = birth.nanoseconds;
  }
  const ProcessRun ended = shared->run;
  munmap(memory, sizeof(Shared));
  return ended;
}

}  // namespace privatemail

// Replacements of the C library's functions. off_t has 64 bits in both families.
static_assert(sizeof(off_t) == 8);

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0);
  va_end(arguments);
  return privatemail::Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));

int close(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("close");
  if (privatemail::simulated::disk != nullptr) privatemail::simulated::disk->Closed(descriptor);
  return real(descriptor);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  return privatemail::WriteAt(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t offset)
    __attribute__((alias("pwrite")));
ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = privatemail::Real<ssize_t(int, const void*, size_t)>("write");
  if (privatemail::simulated::disk == nullptr || !privatemail::simulated::disk->Knows(descriptor)) {
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
int ftruncate64(int descriptor, off64_t size) noexcept __attribute__((alias("ftruncate")));

int fsync(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("fsync");
  return privatemail::SyncHere(descriptor) ? 0 : real(descriptor);
}
int fdatasync(int descriptor) {
  static const auto real = privatemail::Real<int(int)>("fdatasync");
  return privatemail::SyncHere(descriptor) ? 0 : real(descriptor);
}

int unlink(const char* path) noexcept {
  static const auto real = privatemail::Real<int(const char*)>("unlink");
  std::string name;
  const bool held = privatemail::simulated::disk != nullptr &&
                    privatemail::simulated::disk->Holds(path, &name) &&
                    privatemail::simulated::disk->Exists(name);
  if (held) privatemail::simulated::disk->Count();
  const int result = real(path);
  if (held && result == 0) privatemail::simulated::disk->Renamed(name, nullptr);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = privatemail::Real<int(const char*, const char*)>("rename");
  return privatemail::GiveName(from, to, real, /*moves=*/true);
}

int link(const char* from, const char* to) noexcept {
  static const auto real = privatemail::Real<int(const char*, const char*)>("link");
  return privatemail::GiveName(from, to, real, /*moves=*/false);
}

int statx(int descriptor, const char* path, int flags, unsigned mask,
          struct statx* status) noexcept {
  static const auto real =
      privatemail::Real<int(int, const char*, int, unsigned, struct statx*)>("statx");
  const int result = real(descriptor, path, flags, mask, status);
  const auto* const file = privatemail::simulated::disk != nullptr
                               ? privatemail::simulated::disk->Of(descriptor)
                               : nullptr;
  if (result == 0 && file != nullptr) {
    status->stx_ino = 1;
    status->stx_btime.tv_sec = file->born / 1'000'000'000;
    status->stx_btime.tv_nsec = static_cast<uint32_t>(file->born % 1'000'000'000);
  }
  return result;
}

}  // extern "C"

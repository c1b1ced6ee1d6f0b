#include "common/base/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace privatemail {
namespace {

// The first word of the file as a number; `otherwise` if it is none, such as "max".
int64_t ReadNumber(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  int64_t number = 0;
  return absl::SimpleAtoi(word, &number) ? number : otherwise;
}

// The version 2 group of this process: "/system.slice/privatemaild.service", in a container "/".
std::filesystem::path OwnGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "0::/")) return line.substr(3);
  }
  return "/";
}

// Free bytes that the allocator holds in memory, and the program itself. mallinfo2 counts free
// bytes also after malloc_trim has returned their pages.
int64_t ResidentUnusedMemory() {
  const struct mallinfo2 heap = ::mallinfo2();
  return ResidentMemory() - static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

}  // namespace

int64_t AvailableMemory(const std::string& cgroup_root) {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  int64_t least = ReadNumber(cgroup_root + "/memory/memory.limit_in_bytes", machine);
  for (std::filesystem::path group = OwnGroup();; group = group.parent_path()) {
    least = std::min(least, ReadNumber(cgroup_root + group.string() + "/memory.max", machine));
    if (group == group.parent_path()) return std::min(least, machine);
  }
}

int64_t ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void BoundKeptMemory() {
  constexpr int kBytes = 4 << 20;
  (void)::mallopt(M_TRIM_THRESHOLD, kBytes);  // free bytes at the end of a thread's heap
  (void)::mallopt(M_MMAP_THRESHOLD, kBytes);  // of a block that is returned on its own
}

void ReturnFreeMemory() {
  constexpr int64_t kKeptBytes = 8 << 20;
  // Unused memory that malloc_trim leaves is fragmented: later calls would walk it in vain.
  static std::atomic<int64_t> after_last = 0;
  const int64_t unused = ResidentUnusedMemory();
  after_last = std::min<int64_t>(after_last, unused);
  if (unused <= after_last + kKeptBytes) return;
  ::malloc_trim(0);
  after_last = ResidentUnusedMemory();
}

}  // namespace privatemail

#include "server/daemon/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"

namespace privatemail::server {
namespace {

// The first word of the file as a number; `otherwise` if it is none, such as "max".
int64_t ReadNumber(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  int64_t number = 0;
  return absl::SimpleAtoi(word, &number) ? number : otherwise;
}

}  // namespace

int64_t AvailableMemory(const std::string& cgroup_root) {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  // A container sees its own group as the root.
  const int64_t second = ReadNumber(cgroup_root + "/memory.max", machine);
  const int64_t first = ReadNumber(cgroup_root + "/memory/memory.limit_in_bytes", machine);
  return std::min({machine, second, first});
}

int64_t ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void ReturnFreeMemory() {
  constexpr size_t kKeptBytes = 8 << 20;
  const struct mallinfo2 heap = ::mallinfo2();
  if (heap.fordblks > kKeptBytes + heap.uordblks / 16) ::malloc_trim(0);
}

}  // namespace privatemail::server

// Memory of this process and of its machine.
#ifndef PRIVATEMAIL_COMMON_BASE_PROCESS_MEMORY_H_
#define PRIVATEMAIL_COMMON_BASE_PROCESS_MEMORY_H_

#include <cstdint>
#include <string>

namespace privatemail {

// Bytes that the process may take: the machine's memory or, if less, the limit of its control
// groups (version 1 or 2). cgroup_root: where they are mounted.
int64_t AvailableMemory(const std::string& cgroup_root = "/sys/fs/cgroup");

// Bytes of the process in memory; 0: unknown.
int64_t ResidentMemory();

// For the whole process, before it starts threads: the allocator returns large blocks when they are
// freed. By default it would keep up to 64 MiB for each thread after a peak, out of reach of
// ReturnFreeMemory.
void BoundKeptMemory();

// Returns memory to the system that the allocator keeps after a peak, if it is much.
void ReturnFreeMemory();

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PROCESS_MEMORY_H_

// Protection of secrets in the memory of a process.
#ifndef PRIVATEMAIL_COMMON_BASE_CORE_DUMPS_H_
#define PRIVATEMAIL_COMMON_BASE_CORE_DUMPS_H_

#include <sys/prctl.h>
#include <sys/resource.h>

namespace privatemail {

// Call first in main. A core dump would hold keys, vectors and payloads in the clear.
// - No core file, also of programs that this one executes. A pipe in core_pattern ignores the limit
//   of its size.
// - Not dumpable: no dump into such a pipe; other processes of the user can neither attach nor read
//   /proc/PID/mem. Ends with an exec.
inline void DisableCoreDumps() {
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_CORE_DUMPS_H_

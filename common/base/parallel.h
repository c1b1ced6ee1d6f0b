// Work shared out over the machine's cores.
#ifndef PRIVATEMAIL_COMMON_BASE_PARALLEL_H_
#define PRIVATEMAIL_COMMON_BASE_PARALLEL_H_

#include "absl/functional/function_ref.h"

namespace privatemail {

// Runs task(0) .. task(count - 1), each once, on as many threads as there are cores, the caller's
// among them, and returns when all are done. The order is not fixed: a task writes only what is its
// own, so that results do not depend on the number of cores. What a task throws is thrown here. A
// machine that refuses more threads makes it slower, never wrong.
void ParallelFor(int count, absl::FunctionRef<void(int)> task);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PARALLEL_H_

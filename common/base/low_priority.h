// Work that others need not wait for.
#ifndef PRIVATEMAIL_COMMON_BASE_LOW_PRIORITY_H_
#define PRIVATEMAIL_COMMON_BASE_LOW_PRIORITY_H_

#include "absl/functional/function_ref.h"

namespace privatemail {

// Lets the calling thread, and those that it starts from now on, have a tenth of the processor time
// that a thread of usual priority has beside them, and all of it where nobody else wants any: ten
// steps of niceness. For good: a thread that may lower its priority may not raise it again.
void LowerPriority();

// Runs the work so, on a thread of its own, and returns when it is done; throws what it throws.
// Where no thread can be had, it runs on the caller's as it is.
void AtLowPriority(absl::FunctionRef<void()> work);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_LOW_PRIORITY_H_

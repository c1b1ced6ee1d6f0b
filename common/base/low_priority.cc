#include "common/base/low_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <system_error>
#include <thread>

namespace privatemail {
namespace {

constexpr int kSteps = 10;

}  // namespace

void LowerPriority() {
  const auto self = static_cast<id_t>(::gettid());  // on Linux every thread has a niceness
  // Without effect where it fails: slower for others, never wrong.
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kSteps);
}

void AtLowPriority(absl::FunctionRef<void()> work) {
  std::exception_ptr thrown;
  std::thread thread;
  try {
    thread = std::thread([&] {
      LowerPriority();
      try {
        work();
      } catch (...) {
        thrown = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    return work();
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace privatemail

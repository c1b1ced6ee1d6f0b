// Forks of a test's process.
#ifndef PRIVATEMAIL_TESTS_TESTING_FORK_H_
#define PRIVATEMAIL_TESTS_TESTING_FORK_H_

#include <sys/wait.h>
#include <unistd.h>

namespace privatemail {

// Whether run() returned true in a fork. An alarm ends one that waits.
template <typename Run>
[[nodiscard]] bool HoldsInFork(Run run) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(run() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_FORK_H_

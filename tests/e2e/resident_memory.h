// How much memory a process takes, and whether that grows.
#ifndef PRIVATEMAIL_TESTS_E2E_RESIDENT_MEMORY_H_
#define PRIVATEMAIL_TESTS_E2E_RESIDENT_MEMORY_H_

#include <sys/types.h>

#include <vector>

namespace privatemail::e2e {

class ResidentMemory {
 public:
  explicit ResidentMemory(pid_t process) : process_(process) {}

  // Reads it once more, at intervals that are the same. A process that has ended has none.
  void Sample();

  double latest_mebibytes() const { return samples_.empty() ? 0 : samples_.back(); }

  // By what share the line of least squares through the second half of the samples rises from its
  // first to its last; 0 for fewer than 4 samples.
  double SecondHalfGrowth() const;

 private:
  const pid_t process_;
  std::vector<double> samples_;  // in MiB
};

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_RESIDENT_MEMORY_H_

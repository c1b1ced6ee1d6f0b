// Trials of files in a child process: parsers of packaged libraries may end the process, or take
// all memory, on a damaged file. Such a file becomes an error of the parent. Thread-safe.
#ifndef PRIVATEMAIL_COMMON_BASE_FILE_TRIAL_H_
#define PRIVATEMAIL_COMMON_BASE_FILE_TRIAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace privatemail {

struct TrialLimits {
  uint64_t bytes;  // that the child may take beyond those it has at its start
  unsigned seconds;
};

// Runs the command, which calls ReportTrial, and waits for its end, at most for so many seconds.
// `expected`: "a model that OpenCV can run". FAILED_PRECONDITION: the command cannot be started.
// INVALID_ARGUMENT: the reported message, or "PATH: expected EXPECTED, got one that ends the
// process that runs it (...)".
absl::Status TryInChild(const std::vector<std::string>& command, unsigned seconds,
                        const std::string& path, absl::string_view expected);

// The same in a fork of this process, for a program without such a command. `run` calls
// ReportTrial; it lacks the other threads, so a lock that one of them holds lasts until the time is
// over.
absl::Status TryInFork(absl::FunctionRef<int()> run, unsigned seconds, const std::string& path,
                       absl::string_view expected);

// In the child: runs the trial within the limits, which end it also if the parent is gone, and
// reports its status. Returns the exit code.
int ReportTrial(const TrialLimits& limits, absl::FunctionRef<absl::Status()> trial);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_FILE_TRIAL_H_

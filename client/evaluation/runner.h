// Runs experiments on all cores and goes on where it was interrupted.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/evaluation/job.h"

namespace privatemail::client {

struct RunProgress {
  int64_t jobs = 0;
  int64_t done = 0;
  int64_t kept = 0;          // of those that are done: by an earlier run
  double seconds = 0;        // since the run began
  double seconds_left = -1;  // by how long jobs of each kind took; negative while none has ended
};

struct RunOptions {
  std::string folder;  // made if it is not there; results of jobs are in `jobs` in it
  std::string study;   // all that results depend on beside their jobs
  std::function<void(const RunProgress&)> progress = {};  // from one thread, ten times a second
};

// The figures of all experiments, in their order. A job whose result is kept under the same study,
// experiment and key is not run again; a file that cannot be read as such a result is replaced.
// The same on any number of cores. A job that returns FAILED_PRECONDITION, or a number that is not
// finite, is refused: its result says why and is not kept. Any other error of a job or of the disk
// ends the run, names the experiment and loses nothing that is done.
absl::StatusOr<std::vector<Figure>> RunExperiments(const std::vector<Experiment>& experiments,
                                                   const RunOptions& options);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_RUNNER_H_
